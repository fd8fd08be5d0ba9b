#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace satrap::app {

/// What a user should know about a finished run, in words, and the next command: rows that were
/// skipped and why, labels and inputs that never change, too few steps, a result too good to be
/// true, one worse than the base rate or far from it, overfitting, the best evaluation against the
/// last. `run`: of read_run.
std::string closing_words(const nlohmann::ordered_json& run);

/// The doubts about the run, a sentence each.
std::vector<std::string> findings(const nlohmann::ordered_json& run);

}  // namespace satrap::app
