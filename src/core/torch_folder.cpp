#include "satrap/core/torch_folder.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

#include "satrap/core/error.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code unreadable;
  return fs::exists(path, unreadable);
}

/// The version in the line `__version__ = '2.11.0+cu130'` of version.py, without what follows the
/// +. "": there is none.
std::string version_of(const fs::path& torch) {
  std::ifstream file(torch / "version.py");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("__version__")) continue;
    const std::size_t begin = line.find('\'');
    if (begin == std::string::npos) return "";
    return line.substr(begin + 1, line.find_first_of("+'", begin + 1) - begin - 1);
  }
  return "";
}

/// The fault of a folder; "" if its libraries can be used.
std::string fault_of(const fs::path& torch, const std::string& version) {
  if (!is_there(torch / "lib/libtorch_cpu.so")) return "has no lib/libtorch_cpu.so";
  const std::string found = version_of(torch);
  if (found == version) return "";
  return found.empty() ? "has no version.py that says its version" : "is version " + found;
}

/// The Pythons, each by the folder above its bin/.
std::vector<fs::path> python_prefixes(const Environment& environment) {
  std::vector<fs::path> prefixes;
  for (const char* const name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const std::string prefix = environment(name); !prefix.empty())
      prefixes.emplace_back(prefix);
  }
  std::istringstream folders(environment("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (fs::path(folder).is_absolute() && is_there(fs::path(folder) / "python3")) {
      prefixes.push_back(fs::path(folder).parent_path());
    }
  }
  if (const std::string home = environment("HOME"); !home.empty()) {
    prefixes.push_back(fs::path(home) / ".local");
  }
  prefixes.emplace_back("/usr/local");
  return prefixes;
}

/// The packages `torch` of one Python, of every version that has its folder there.
std::vector<fs::path> torch_of(const fs::path& prefix) {
  std::vector<fs::path> found;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(prefix / "lib", none)) {
    if (!entry.path().filename().string().starts_with("python3")) continue;
    for (const char* const packages : {"site-packages", "dist-packages"}) {
      const fs::path torch = entry.path() / packages / "torch";
      if (is_there(torch)) found.push_back(torch);
    }
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace

fs::path find_torch_folder(const std::string& version,
                           const fs::path& program,
                           const Environment& environment) {
  if (std::string given = environment("SATRAP_TORCH_DIR"); !given.empty()) {
    const std::string fault = fault_of(given, version);
    if (fault.empty()) return given;
    throw Error(ErrorCode::kUnavailable,
                concat("SATRAP_TORCH_DIR=", given, " ", fault, "; it names the folder of PyTorch ",
                       version, ", .../site-packages/torch"));
  }
  // A wheel has its programs in site-packages/satrap/bin.
  std::vector<fs::path> folders{program.parent_path().parent_path().parent_path() / "torch"};
  if (!is_there(folders[0])) folders.clear();
  for (const fs::path& prefix : python_prefixes(environment)) {
    std::ranges::copy(torch_of(prefix), std::back_inserter(folders));
  }
  std::string others;
  for (const fs::path& folder : folders) {
    const std::string fault = fault_of(folder, version);
    if (fault.empty()) return folder;
    others += concat(", ", folder.string(), " ", fault);
  }
  throw Error(ErrorCode::kUnavailable,
              concat("no PyTorch ", version, " is found", others, "; `pip install torch==", version,
                     "` for the python3 on PATH or in VIRTUAL_ENV, or name its folder in "
                     "SATRAP_TORCH_DIR"));
}

fs::path torch_folder() {
  std::error_code unknown;
  return find_torch_folder(SATRAP_TORCH_VERSION, fs::read_symlink("/proc/self/exe", unknown),
                           [](const char* name) {
                             const char* const value = std::getenv(name);
                             return std::string(value == nullptr ? "" : value);
                           });
}

}  // namespace satrap
