#pragma once

#include <string>
#include <vector>

#include "satrap/job/job_config.h"

namespace CLI {
class App;
}

namespace satrap::app {

/// CONFIG [key.path=value ...]: the arguments of every command that works on a job.
struct JobArguments {
  std::string config;
  std::vector<std::string> overrides;

  void add_to(CLI::App& command);

  /// CONFIG may be left out; the caller then says which it is.
  void add_optional_to(CLI::App& command);

  /// Reads and validates the job. Throws Error(kInvalidConfig).
  job::JobConfig load() const;
};

}  // namespace satrap::app
