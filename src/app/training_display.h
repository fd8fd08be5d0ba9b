#pragma once

#include <string>

#include "satrap/core/progress_line.h"
#include "satrap/trainer/trainer.h"

namespace satrap::app {

/// Shows the progress of training on stderr: one rewritten line on a terminal, a log message per
/// report elsewhere. Used by the thread of train().
class TrainingDisplay {
 public:
  void show(const trainer::Report& report);

 private:
  ProgressLine line_;
};

/// The result of a job in a few lines, from summary.json. Throws Error(kIo | kCorrupt).
std::string describe_summary(const std::string& summary_path);

}  // namespace satrap::app
