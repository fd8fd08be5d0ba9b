#pragma once

#include <atomic>

#include "model.h"
#include "satrap/data/schema.h"
#include "satrap/data/transforms.h"
#include "satrap/trainer/trainer.h"

namespace satrap::trainer {

/// Metrics of the model as it stands on the job's evaluation data. Changes nothing: rows that were
/// never trained on count with their initial weights and are not created. No update may run
/// meanwhile. `stop` may be null; once set, the metrics are of the rows seen so far.
Evaluation evaluate_model(const JobConfig& config,
                          const data::Schema& schema,
                          const data::FittedTransforms& transforms,
                          Model& model,
                          ThreadPool& pool,
                          const std::atomic<bool>* stop);

/// The numeric input of the dense network: the batch's numbers, then the sequence masks. Fills and
/// returns `joined` only if there are masks.
std::span<const float> join_numeric(const data::Batch& batch,
                                    std::span<const float> mask,
                                    std::vector<float>& joined);

}  // namespace satrap::trainer
