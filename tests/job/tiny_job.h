#pragma once

#include <string>

#include "satrap/job/job_config.h"

namespace satrap::job {

/// A job of a few hundred steps of generated data that trains in an instant: 4 features (two of
/// them bags), 3 numbers, a small DLRM.
inline JobConfig tiny_job(const std::string& run_dir) {
  JobConfig config;
  config.run_dir = run_dir;
  config.data.format = data::DataFormat::kSynthetic;
  config.data.batch_size = 64;
  config.data.synthetic.rows = 64 * 40;
  config.data.synthetic.eval_rows = 512;
  config.data.synthetic.cardinalities = {50, 300, 2000, 7};
  config.data.synthetic.min_ids = {1, 0, 1, 1};
  config.data.synthetic.max_ids = {1, 5, 3, 1};
  config.data.synthetic.num_numeric = 3;
  config.data.synthetic.numeric_missing = {0.1};
  config.tables["default"].dim = 8;
  config.features["default"];
  config.model.type = ModelType::kDlrm;
  config.model.bottom = {16};
  config.model.top = {16};
  config.train.deterministic = true;
  config.train.staleness_schedule =
      StalenessSchedule::kConstant;  // sqrt would have a bound of 0 here
  config.train.report_every = "never";
  config.checkpoint.every = "never";
  return config;
}

}  // namespace satrap::job
