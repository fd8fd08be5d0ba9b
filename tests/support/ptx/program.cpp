#include "tests/support/ptx/program.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <functional>
#include <span>

#include "tests/support/ptx/parser.h"
#include "tests/support/simt/symbols.h"

namespace ptx {

Program::Program(const std::filesystem::path& folder) {
  for (const auto& path : files_of(folder, ".ptx")) {
    std::ifstream text(path);
    parse(text, path.filename().string(), module_);
  }
  if (module_.kernels.empty())
    throw simt::Fault("no kernels in the .ptx files of " + folder.string());
  for (const auto& [name, address] : simt::functions_of_this_program()) {
    const auto found = module_.kernels.find(canonical_name(name));
    if (found == module_.kernels.end()) continue;
    const auto [at, is_new] = by_host_function_.try_emplace(address, &found->second);
    if (!is_new) throw simt::Fault(name + " and " + at->second->name + " are one host function");
  }
}

void Program::launch(const simt::Launch& launch, const void* kernel, const Arguments& arguments) {
  const auto found = by_host_function_.find(kernel);
  if (found == by_host_function_.end()) throw simt::Fault(launch.name + ": no PTX for this kernel");
  if (launch.shared_bytes != 0) throw simt::Fault(launch.name + ": dynamic shared memory");
  const Executed now = run(*found->second, module_.shared_arrays, launch.grid.count(),
                           launch.block.count(), arguments, simt::draw_stream(~std::uint64_t{0}));
  Executed& sum = executed_[canonical_name(found->second->name)];
  sum.launches += now.launches;
  sum.lane_instructions += now.lane_instructions;
  sum.warp_instructions += now.warp_instructions;
  sum.by_instruction.resize(now.by_instruction.size());
  std::ranges::transform(sum.by_instruction, now.by_instruction, sum.by_instruction.begin(),
                         std::plus{});
  sum.sectors.read += now.sectors.read;
  sum.sectors.written += now.sectors.written;
}

std::vector<std::string> Program::never_launched() const {
  std::vector<std::string> names;
  for (const auto& [name, kernel] : module_.kernels) {
    if (!executed_.contains(name)) names.push_back(name);
  }
  return names;
}

std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder,
                                            const std::string& extension) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == extension) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace ptx
