#pragma once

#include <string>
#include <vector>

namespace satrap::app {

/// A web page about one run, or comparing several: curves, result, configuration. One file that
/// needs no network and no other file. Throws Error as read_run does.
std::string report_page(const std::vector<std::string>& run_dirs);

/// Writes it to a file, or to the URL of one in a store. Throws also Error(kIo) if it cannot.
void write_report_page(const std::vector<std::string>& run_dirs, const std::string& path);

/// Path of the page of one run, in its directory.
std::string report_path(const std::string& run_dir);

}  // namespace satrap::app
