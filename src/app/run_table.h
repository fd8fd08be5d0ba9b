#pragma once

#include <string>
#include <vector>

namespace satrap::app {

/// Runs as lines of text, the best evaluation first: its metric and step, logloss and NE there, and
/// what their configurations differ in. Runs that were evaluated on other data than the first one
/// are ranked apart, below the words that say what differs. Throws as read_run.
std::string run_table(const std::vector<std::string>& run_dirs);

}  // namespace satrap::app
