#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "satrap/data/dataset.h"
#include "satrap/data/transforms.h"
#include "satrap/job/job_config.h"
#include "satrap/pipeline/model.h"
#include "satrap/pipeline/rank_group.h"
#include "satrap/trainer/trainer.h"

namespace satrap::trainer {

/// Metrics of the current model on the job's evaluation data. All ranks call it, each scores a
/// part, and all get the result. Each rank keeps and sorts the scores of all examples meanwhile:
/// about 30 bytes per example, 24 more with data.group_by, 20 with weights,
/// 8 for each of several labels, and 9 for each column of train.slices.
/// Changes nothing: rows that were never trained count with their initial weights and are not
/// created. No update may run meanwhile. `stop` may be null; once it is set on any rank, there is
/// no result. `live` gets the number of examples; it may be null.
std::optional<Evaluation> evaluate_model(const data::Dataset& data,
                                         const job::JobConfig& config,
                                         const data::FittedTransforms& transforms,
                                         pipeline::Model& model,
                                         const pipeline::Cluster& cluster,
                                         pipeline::RankGroup& ranks,
                                         const std::atomic<bool>* stop,
                                         LiveProgress* live = nullptr);

}  // namespace satrap::trainer
