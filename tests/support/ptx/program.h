#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/support/ptx/instruction.h"
#include "tests/support/ptx/machine.h"
#include "tests/support/simt/executor.h"

namespace ptx {

/// The PTX of the kernels that this program launches. A kernel is known by the host's function of
/// the same name, which the program's symbol table names.
class Program {
 public:
  /// Reads all .ptx files of a folder. Throws simt::Fault if there are none, or one does not parse.
  explicit Program(const std::filesystem::path& folder);

  /// Runs a kernel in place of its host function, under the executor's schedule.
  void launch(const simt::Launch& launch, const void* kernel, const Arguments& arguments);

  /// Canonical names of the kernels that no launch has run so far.
  std::vector<std::string> never_launched() const;

  const Kernel& kernel(const std::string& canonical_name) const {
    return module_.kernels.at(canonical_name);
  }

  /// What the launches of each kernel have executed so far.
  const std::map<std::string, Executed>& executed() const { return executed_; }

 private:
  Module module_;
  std::map<const void*, const Kernel*> by_host_function_;
  std::map<std::string, Executed> executed_;
};

/// The files of a folder with that extension, in order: of a kernel that several of them hold, the
/// first counts, in PTX and in SASS.
std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder,
                                            const std::string& extension);

}  // namespace ptx
