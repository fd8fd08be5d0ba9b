#pragma once

#include <string>
#include <vector>

namespace satrap::app {

/// A web page about one run, or about several side by side: curves, result, configuration. One file
/// that needs nothing else: no network, no other file. Throws Error as read_run does.
std::string report_page(const std::vector<std::string>& run_dirs);

/// The page of one run lies in its directory.
std::string report_path(const std::string& run_dir);

}  // namespace satrap::app
