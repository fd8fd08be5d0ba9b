#pragma once

#include <nlohmann/json_fwd.hpp>

#include "satrap/trainer/metrics.h"
#include "satrap/trainer/trainer.h"

namespace satrap::trainer {

/// JSON has no NaN: what is undefined is null.
nlohmann::ordered_json json_number(double value);

/// How metrics stand in metrics.jsonl and summary.json.
nlohmann::ordered_json metrics_json(const Metrics& metrics, job::Loss loss);

/// With several labels: also the metrics of each, under its name.
nlohmann::ordered_json evaluation_json(const Evaluation& evaluation);

/// The columns of the bins of each label whose loss is bce.
nlohmann::ordered_json reliability_json(const Evaluation& evaluation);

}  // namespace satrap::trainer
