#pragma once

#include <cstdint>
#include <string>

namespace satrap {

/// CPUs that a control group's quota amounts to, from the folder of its files (cpu.max of version
/// 2, cpu.cfs_quota_us of version 1); 0: no limit.
std::int64_t cpu_quota(const std::string& folder);

/// Bytes of memory that a control group allows, likewise (memory.max of version 2,
/// memory.limit_in_bytes of version 1); 0: no limit.
std::int64_t memory_limit(const std::string& folder);

}  // namespace satrap
