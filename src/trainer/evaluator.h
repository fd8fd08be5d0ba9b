#pragma once

#include <atomic>
#include <optional>

#include "model.h"
#include "rank_group.h"
#include "satrap/data/schema.h"
#include "satrap/data/transforms.h"
#include "satrap/trainer/trainer.h"

namespace satrap::trainer {

/// Metrics of the model as it stands on the job's evaluation data, of which each rank scores a
/// part; all ranks call it, and all get the result. Changes nothing: rows that were never trained
/// on count with their initial weights and are not created. No update may run meanwhile. `stop` may
/// be null; once it is set on any rank, there is no result.
std::optional<Evaluation> evaluate_model(const JobConfig& config,
                                         const data::Schema& schema,
                                         const data::FittedTransforms& transforms,
                                         Model& model,
                                         const Cluster& cluster,
                                         RankGroup& ranks,
                                         const std::atomic<bool>* stop);

/// The numeric input of the dense network: the batch's numbers, then the sequence masks. Fills and
/// returns `joined` only if there are masks.
std::span<const float> join_numeric(const data::Batch& batch,
                                    std::span<const float> mask,
                                    std::vector<float>& joined);

}  // namespace satrap::trainer
