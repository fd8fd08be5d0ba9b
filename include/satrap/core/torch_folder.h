#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace satrap {

/// The value of a variable of the environment; "" if it is not set.
using Environment = std::function<std::string(const char* name)>;

/// The folder `torch` of PyTorch `version` (site-packages/torch): that of SATRAP_TORCH_DIR if it is
/// set; else the first of that version that is beside the wheel that has `program`, or in the
/// Python of VIRTUAL_ENV, of CONDA_PREFIX, of a python3 on PATH, of the user, or in /usr/local.
/// Throws Error(kUnavailable), which says what is there instead and what to do.
std::filesystem::path find_torch_folder(const std::string& version,
                                        const std::filesystem::path& program,
                                        const Environment& environment);

/// The same of the version that satrap was built with, for this program and its environment.
std::filesystem::path torch_folder();

}  // namespace satrap
