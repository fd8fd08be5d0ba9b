#pragma once

#include <cstdint>

namespace satrap {

/// Memory of this process that is in RAM now, shared libraries included; 0 if /proc is missing.
std::int64_t resident_bytes();

/// CPU time of all threads of this process so far, user and system.
double cpu_seconds();

/// CPUs this process may use, at least 1: those of its affinity mask, or fewer by a container's
/// quota (a quota of 1.5 CPUs counts as 2).
std::int64_t num_cpus();

/// The memory of this machine, or what a container allows of it.
std::int64_t memory_bytes();

/// The memory that a container allows; 0: no limit.
std::int64_t memory_limit_bytes();

}  // namespace satrap
