#include "satrap/core/resource.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fstream>
#include <thread>

#include <sched.h>
#include <unistd.h>

#include "src/core/control_group.h"

namespace satrap {
namespace {

std::int64_t machine_memory_bytes() { return sysconf(_SC_PAGESIZE) * sysconf(_SC_PHYS_PAGES); }

}  // namespace

std::int64_t resident_bytes() {
  std::int64_t total_pages = 0;
  std::int64_t resident_pages = 0;
  std::ifstream("/proc/self/statm") >> total_pages >> resident_pages;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

double cpu_seconds() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::int64_t cpu_quota(const std::string& folder) {
  double quota = 0;
  double period = 0;
  std::ifstream v2(folder + "/cpu.max");
  if (!(v2 >> quota >> period)) {  // missing, or "max 100000"
    std::ifstream(folder + "/cpu.cfs_quota_us") >> quota;
    std::ifstream(folder + "/cpu.cfs_period_us") >> period;
  }
  if (quota <= 0 || period <= 0) return 0;
  return std::max<std::int64_t>(1, std::llround(std::ceil(quota / period)));
}

std::int64_t memory_limit(const std::string& folder) {
  std::int64_t bytes = 0;
  // "max" is not a number; version 1 says "no limit" by a number above all memory.
  if (std::ifstream(folder + "/memory.max") >> bytes) return bytes;
  if (std::ifstream(folder + "/memory.limit_in_bytes") >> bytes) return bytes;
  return 0;
}

std::int64_t memory_limit_bytes() {
  const std::int64_t machine = machine_memory_bytes();
  std::int64_t least = machine;
  for (const char* folder : {"/sys/fs/cgroup", "/sys/fs/cgroup/memory"}) {
    const std::int64_t limit = memory_limit(folder);
    if (limit > 0) least = std::min(least, limit);
  }
  return least < machine ? least : 0;
}

std::int64_t memory_bytes() {
  const std::int64_t limit = memory_limit_bytes();
  return limit > 0 ? limit : machine_memory_bytes();
}

std::int64_t num_cpus() {
  cpu_set_t mask;
  // A mask of more than 1024 CPUs does not fit: then all of them.
  std::int64_t cpus = sched_getaffinity(0, sizeof(mask), &mask) == 0
                          ? CPU_COUNT(&mask)
                          : static_cast<std::int64_t>(std::thread::hardware_concurrency());
  for (const char* folder : {"/sys/fs/cgroup", "/sys/fs/cgroup/cpu"}) {
    const std::int64_t quota = cpu_quota(folder);
    if (quota > 0) cpus = std::min(cpus, quota);
  }
  return std::max<std::int64_t>(cpus, 1);
}

}  // namespace satrap
