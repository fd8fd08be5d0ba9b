#pragma once

#include <nlohmann/json_fwd.hpp>

#include "satrap/trainer/metrics.h"
#include "satrap/trainer/trainer.h"

namespace satrap::trainer {

/// How metrics stand in metrics.jsonl and summary.json. JSON has no NaN: what is undefined is null.
nlohmann::ordered_json metrics_json(const Metrics& metrics);

/// With several labels: also the metrics of each, under its name.
nlohmann::ordered_json evaluation_json(const Evaluation& evaluation);

/// Of each label, the columns of its bins.
nlohmann::ordered_json reliability_json(const Evaluation& evaluation);

}  // namespace satrap::trainer
