#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "satrap/checkpoint/checkpoint_format.h"
#include "satrap/job/job_config.h"
#include "satrap/pipeline/model.h"

namespace satrap::checkpoint {

/// Starts a new job with rows and dense parameters of another job's checkpoint.
class WarmStart {
 public:
  /// Throws Error(kCorrupt), or Error(kInvalidConfig) with a line for every table of the checkpoint
  /// that was requested and does not fit, naming both; for the dense network also as check_labels.
  WarmStart(const job::JobConfig& config, std::string checkpoint, const pipeline::Model& model);

  /// Fills a freshly built model; all ranks call it.
  void load(pipeline::Model& model) const;

  const std::vector<std::string>& tables() const { return tables_; }  // whose rows are taken

 private:
  void choose_tables();
  void check_table(const Manifest::Table& saved, std::string& problems);
  void load_dense(dense::Savable& network) const;

  const job::WarmStartConfig& config_;
  const std::string checkpoint_;
  const Manifest manifest_;
  const std::vector<table::TableSpec>& specs_;
  std::vector<std::string> tables_;
  pipeline::InitialRows rows_;
};

}  // namespace satrap::checkpoint
