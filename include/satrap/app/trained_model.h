#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "satrap/job/job_config.h"
#include "satrap/trainer/export.h"
#include "satrap/trainer/predict.h"

namespace satrap::app {

struct UsedJob;

/// A checkpoint and the job that it was trained with, for `satrap eval`, `predict` and `export`
/// from a program. Each call reads the checkpoint. `data`: paths as of --data; empty: the
/// evaluation data of the job. One thread at a time.
class TrainedModel {
 public:
  /// `path`: as --checkpoint. Throws Error as the commands do, and for a network of a program.
  explicit TrainedModel(const std::string& path);
  ~TrainedModel();
  TrainedModel(const TrainedModel&) = delete;
  TrainedModel& operator=(const TrainedModel&) = delete;

  const job::JobConfig& config() const { return config_; }
  const std::string& checkpoint() const;

  /// Metrics as in summary.json. Empty once `stop` was set.
  nlohmann::ordered_json evaluate(const std::vector<std::string>& data,
                                  const std::atomic<bool>& stop) const;

  /// As trainer::predict.
  trainer::PredictedRows predict(
      const std::vector<std::string>& data,
      const std::atomic<bool>& stop,
      const std::function<void(const trainer::PredictedLines& lines)>& take) const;

  /// As trainer::export_model.
  trainer::Exported save(const std::string& out, const trainer::ExportOptions& options) const;

 private:
  job::JobConfig with_data(const std::vector<std::string>& data) const;

  const std::unique_ptr<UsedJob> used_;
  const job::JobConfig config_;
};

}  // namespace satrap::app
