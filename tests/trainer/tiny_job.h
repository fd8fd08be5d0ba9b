#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "satrap/trainer/trainer.h"
#include "tests/job/tiny_job.h"
#include "tests/support/temporary_directory.h"

namespace satrap::trainer {

using job::tiny_job;

inline nlohmann::json summary_of(const TrainOutcome& outcome) {
  std::ifstream file(outcome.summary_path);
  return nlohmann::json::parse(file);
}

}  // namespace satrap::trainer
