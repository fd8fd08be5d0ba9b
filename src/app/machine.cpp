#include "src/app/machine.h"

#include <array>
#include <fstream>

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sched.h>
#include <unistd.h>

#include "satrap/core/resource.h"

namespace satrap::app {
namespace {

/// A size from /proc/meminfo, in bytes.
std::int64_t memory_field(const std::string& name) {
  std::ifstream file("/proc/meminfo");
  std::string word;
  while (file >> word && word != name + ":") {
  }
  std::int64_t kib = 0;
  file >> kib;
  return kib * 1024;
}

/// The quota of control groups, version 2, as seen from inside a container. "max" reads as 0.
double group_cpu_quota() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double quota = 0.0;
  double period = 0.0;
  return file >> quota >> period && period > 0.0 ? quota / period : 0.0;
}

std::int64_t count_usable_cpus() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 0;  // more CPUs than a cpu_set_t holds
  return CPU_COUNT(&set);
}

}  // namespace

Machine inspect_machine() {
  Machine machine;
  machine.cpu = inspect_cpu();
  machine.online_cpus = sysconf(_SC_NPROCESSORS_ONLN);
  machine.usable_cpus = count_usable_cpus();
  machine.cpu_quota = group_cpu_quota();
  machine.memory_bytes = memory_field("MemTotal");
  machine.available_bytes = memory_field("MemAvailable");
  machine.memory_limit_bytes = memory_limit_bytes();
  machine.libc = std::string("glibc ") + gnu_get_libc_version();
  return machine;
}

std::string describe_machine() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const Machine machine = inspect_machine();
  return fmt::format("{}, {}, {} CPUs, {:.1f} GiB", host.data(), machine.cpu.name, num_cpus(),
                     static_cast<double>(machine.memory_bytes) / (1 << 30));
}

Build inspect_build() {
  Build build;
#if defined(__clang__)
  build.compiler = "Clang " __clang_version__;
#else
  build.compiler = "GCC " __VERSION__;
#endif
#if !defined(__OPTIMIZE__)
  build.type = "not optimised: slow";
#elif defined(NDEBUG)
  build.type = "optimised";
#else
  build.type = "optimised, with assertions: slow";
#endif
#if defined(__SANITIZE_ADDRESS__)
  build.sanitizers = "address, undefined";
#elif defined(__SANITIZE_THREAD__)
  build.sanitizers = "thread";
#endif
  const CompiledInstructions compiled = compiled_instructions();
  build.instructions = compiled.name;
  const Cpu cpu = inspect_cpu();
  if (!compiled.feature.empty() && !cpu.features.empty() && !cpu.has(compiled.feature)) {
    build.missing = compiled.name;
  }
  return build;
}

}  // namespace satrap::app
