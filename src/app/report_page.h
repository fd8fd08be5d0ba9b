#pragma once

#include <string>
#include <vector>

namespace satrap::app {

/// A web page about one run, or comparing several: curves, result, configuration. One file that
/// needs no network and no other file. Throws Error as read_run does.
std::string report_page(const std::vector<std::string>& run_dirs);

/// Path of the page of one run, in its directory.
std::string report_path(const std::string& run_dir);

}  // namespace satrap::app
