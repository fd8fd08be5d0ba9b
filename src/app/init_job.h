#pragma once

#include <string>
#include <vector>

#include "src/app/job_draft.h"

namespace satrap::app {

/// The configuration that `satrap init` writes for these data if nobody names another: the name of
/// the first file without its endings, in the working directory.
std::string default_config(const std::vector<std::string>& data);

/// Looks at the data, writes the configuration and prints what it says. Throws Error; also if the
/// configuration exists, unless `overwrite`.
void init_job(const DraftRequest& request, bool overwrite);

}  // namespace satrap::app
