#pragma once

#include <string>

namespace satrap::trainer {

/// The runs of a job whose run_dir nobody named: runs/job, which is `first`, runs/job-2, runs/job-3
/// and so on. A folder with a number is one of them if its metrics say so (series_of): that of
/// another job may have such a name too.

/// The name by which a run's metrics say to which series it belongs: that of its first folder.
std::string series_of(const std::string& first);

/// The folder for a new run: `first` until there are runs, then that with the number after the
/// highest, of whatever is there.
std::string next_run(const std::string& first);

/// The folder of the newest run of the series that begins with `path`; `path`, if no other is.
std::string newest_run(const std::string& path);

}  // namespace satrap::trainer
