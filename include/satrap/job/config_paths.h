#pragma once

#include <string>

#include "satrap/job/job_config.h"

namespace satrap::job {

/// Makes the relative paths of a job absolute: those that its file says, and the default run_dir,
/// begin in config.folder; those of the command line in the working directory. config.folder is
/// that of the file if it says no other, and the working directory if the file is not on a disk (a
/// pipe, standard input). Patterns stay patterns; "-" and URLs stay.
void resolve_paths(JobConfig& config, const std::string& file, const ConfigOrigins& origins);

/// The same job as a file says it: paths in config.folder without it, so that a job that was moved
/// with its data is the same, and config.folder says where they are.
JobConfig with_relative_paths(JobConfig config);

/// For a configuration that an earlier version has written: keys that it did not know get the value
/// by which satrap worked then. The meaning of keys that have gone since moves to others. `written`
/// are the keys of the file.
void keep_past_defaults(JobConfig& config, const ConfigOrigins& written);

}  // namespace satrap::job
