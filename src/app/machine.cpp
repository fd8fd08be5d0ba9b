#include "machine.h"

#include <array>
#include <fstream>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sched.h>
#include <unistd.h>

#include "satrap/core/resource.h"

namespace satrap::app {
namespace {

/// The text behind `name :` in a file of such lines (/proc/cpuinfo, /proc/meminfo).
std::string field_of(const char* path, const std::string& name) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line.compare(0, name.size(), name) != 0) continue;
    const std::size_t text = line.find_first_not_of(" \t", colon + 1);
    return text == std::string::npos ? "" : line.substr(text);
  }
  return "";
}

std::int64_t kib_field_of(const char* path, const std::string& name) {
  std::int64_t kib = 0;
  std::istringstream(field_of(path, name)) >> kib;
  return kib * 1024;
}

/// Limits of control groups, version 2, as seen from inside a container. "max" reads as 0.
std::int64_t group_memory_limit() {
  std::ifstream file("/sys/fs/cgroup/memory.max");
  std::int64_t bytes = 0;
  return file >> bytes ? bytes : 0;
}

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
  machine.cpu = field_of("/proc/cpuinfo", "model name");
  std::istringstream words(field_of("/proc/cpuinfo", "flags"));
  for (std::string word; words >> word;) {
    for (const char* name : {"sse4_2", "avx", "f16c", "fma", "avx2", "avx512f", "avx512bw",
                             "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16"}) {
      if (word == name) machine.cpu_features += (machine.cpu_features.empty() ? "" : " ") + word;
    }
  }
  machine.online_cpus = sysconf(_SC_NPROCESSORS_ONLN);
  machine.usable_cpus = count_usable_cpus();
  machine.cpu_quota = group_cpu_quota();
  machine.memory_bytes = kib_field_of("/proc/meminfo", "MemTotal");
  machine.available_bytes = kib_field_of("/proc/meminfo", "MemAvailable");
  machine.memory_limit_bytes = group_memory_limit();
  machine.libc = std::string("glibc ") + gnu_get_libc_version();
  return machine;
}

std::string describe_machine() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const Machine machine = inspect_machine();
  return fmt::format("{}, {}, {} CPUs, {:.1f} GiB", host.data(), machine.cpu, num_cpus(),
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
#if defined(__AVX512F__)
  build.instructions = "AVX-512";
  if (!__builtin_cpu_supports("avx512f")) build.missing = "AVX-512";
#elif defined(__AVX2__)
  build.instructions = "AVX2";
  if (!__builtin_cpu_supports("avx2")) build.missing = "AVX2";
#else
  build.instructions = "the architecture's baseline";
#endif
  return build;
}

}  // namespace satrap::app
