#pragma once

#include <cstdint>
#include <string>

#include "satrap/core/config.h"
#include "satrap/job/cluster_config.h"

namespace satrap::job {

/// `embedding.cache` of the configuration.
struct CacheConfig {
  std::string memory = "0";          // bytes or a share; 0: no cache; auto
  std::string eviction = "auto";     // auto | lookahead | lfu | lru
  std::string policy = "auto";       // auto | exclusive | shared
  std::string host_rows = "staged";  // staged | registered
  bool is_on_gpu = false;            // as JobConfig::device says; not part of the section
  void visit(ConfigVisitor& v);

  /// The cache's memory on a device that has `device_bytes` for it. Throws Error(kInvalidConfig) if
  /// `memory` says none.
  std::int64_t memory_bytes(std::int64_t device_bytes) const;
};

/// `embedding` of the configuration.
struct EmbeddingConfig {
  std::string store = "embedded";  // embedded | ps
  std::string wire = "fp32";       // fp32 | bf16 | fp16
  CacheConfig cache;
  void visit(ConfigVisitor& v);

  bool has_cache() const;

  /// Whether the caches of this cluster's ranks hold copies of rows: those of several nodes know
  /// nothing of each other's.
  bool keeps_copies(const ClusterConfig& cluster) const;

  /// Checks the rules that involve several of its fields. `origins`: what the user has written.
  /// Throws Error(kInvalidConfig) with a message that begins with the key.
  void validate(const ConfigOrigins& origins) const;
};

}  // namespace satrap::job
