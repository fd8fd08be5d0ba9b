#include "satrap/app/trained_model.h"

#include <nlohmann/json.hpp>

#include "satrap/trainer/metrics_json.h"
#include "satrap/trainer/trainer.h"
#include "src/app/checkpoint_paths.h"

namespace satrap::app {
namespace {

std::unique_ptr<UsedJob> job_of(const std::string& path) {
  auto used = std::make_unique<UsedJob>();
  used->checkpoint.path = path;
  return used;
}

}  // namespace

TrainedModel::TrainedModel(const std::string& path)
    : used_(job_of(path)), config_(used_->load({})) {
  used_->network(config_, {}, "eval");  // throws where a program computes it
}

TrainedModel::~TrainedModel() = default;

const std::string& TrainedModel::checkpoint() const { return used_->checkpoint.name(); }

job::JobConfig TrainedModel::with_data(const std::vector<std::string>& data) const {
  job::JobConfig config = config_;
  use_data(data, used_->job, config);
  return config;
}

nlohmann::ordered_json TrainedModel::evaluate(const std::vector<std::string>& data,
                                              const std::atomic<bool>& stop) const {
  const trainer::Evaluation result = trainer::evaluate(with_data(data), used_->checkpoint, &stop);
  if (stop) return {};
  require_examples(result);
  return trainer::evaluation_json(result);
}

trainer::PredictedRows TrainedModel::predict(
    const std::vector<std::string>& data,
    const std::atomic<bool>& stop,
    const std::function<void(const trainer::PredictedLines& lines)>& take) const {
  return trainer::predict(with_data(data), used_->checkpoint, &stop, {}, take);
}

trainer::Exported TrainedModel::save(const std::string& out,
                                     const trainer::ExportOptions& options) const {
  return trainer::export_model(config_, used_->checkpoint, out, options);
}

}  // namespace satrap::app
