#pragma once

#include <string>
#include <utility>
#include <vector>

namespace satrap::app {

/// Names and texts of the lines of `satrap doctor` about GPUs: what `device: auto` is, the driver,
/// each GPU, whether they reach each other, and libtorch there.
std::vector<std::pair<std::string, std::string>> describe_gpus();

}  // namespace satrap::app
