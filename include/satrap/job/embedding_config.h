#pragma once

#include <cstdint>
#include <string>

#include "satrap/core/config.h"
#include "satrap/core/float_type.h"

namespace satrap::job {

/// The place of rows: in the trainer's process or on shards.
enum class StoreKind { kEmbedded, kPs };
inline constexpr Choice<StoreKind> kRowStores[] = {{"embedded", StoreKind::kEmbedded},
                                                   {"ps", StoreKind::kPs}};

/// The rule by which a row of a cache makes room.
enum class Eviction { kAuto, kLookahead, kLfu, kLru };
inline constexpr Choice<Eviction> kEvictions[] = {{"auto", Eviction::kAuto},
                                                  {"lookahead", Eviction::kLookahead},
                                                  {"lfu", Eviction::kLfu},
                                                  {"lru", Eviction::kLru}};

/// How rows that a cache lacks come out of tables in the trainer's process.
enum class HostRows { kStaged, kRegistered };
inline constexpr Choice<HostRows> kHostRows[] = {{"staged", HostRows::kStaged},
                                                 {"registered", HostRows::kRegistered}};

/// `embedding.cache` of the configuration.
struct CacheConfig {
  std::string memory = "0";  // bytes or a share; 0: no cache; auto
  Eviction eviction = Eviction::kAuto;
  HostRows host_rows = HostRows::kStaged;
  std::string former_policy;  // auto | exclusive | shared, of files before it was deleted
  bool is_on_gpu = false;     // as JobConfig::device says; not part of the section
  void visit(ConfigVisitor& v);

  /// The cache's memory on a device that has `device_bytes` for it. Throws Error(kInvalidConfig) if
  /// `memory` says none.
  std::int64_t memory_bytes(std::int64_t device_bytes) const;
};

/// `embedding` of the configuration.
struct EmbeddingConfig {
  StoreKind store = StoreKind::kEmbedded;
  FloatType wire = FloatType::kFp32;
  CacheConfig cache;
  void visit(ConfigVisitor& v);

  bool has_cache() const;

  /// Checks the rules that involve several of its fields. `origins`: what the user has written.
  /// Throws Error(kInvalidConfig) with a message that begins with the key.
  void validate(const ConfigOrigins& origins) const;
};

}  // namespace satrap::job
