#pragma once

#include <string>
#include <vector>

#include "satrap/app/init_job.h"
#include "satrap/data/sample.h"

namespace satrap::app {

/// The configuration of a job, in YAML, with what was seen in the data and why it was decided so as
/// comments.
struct JobDraft {
  std::string yaml;
  std::vector<std::string> notes;  // for the user, a line each
};

/// Throws Error(kInvalidConfig) as choose_label, and if nothing is left to learn from.
JobDraft draft_job(const data::Sample& sample, const DraftRequest& request);

}  // namespace satrap::app
