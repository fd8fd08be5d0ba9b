#pragma once

#include "satrap/data/label_config.h"
#include "satrap/job/job_config.h"
#include "satrap/job/model_config.h"

namespace satrap::job {

/// What a label is trained for: model.loss, or what `auto` means for it. Never kAuto.
Loss loss_of(const ModelConfig& model, const data::LabelConfig& label);

/// The same of the first label, whose metrics early stopping and progress use.
Loss first_loss(const JobConfig& config);

/// The metric that early stopping observes unless the job names one.
StoppingMetric default_metric(Loss loss);

/// Whether evaluations of a label with this loss have the metric.
bool has_metric(Loss loss, StoppingMetric metric);

/// Throws Error(kInvalidConfig) if a loss does not go with a label, or something else that the job
/// asks for with a loss.
void check_losses(const JobConfig& config);

}  // namespace satrap::job
