#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "satrap/ps/shard_job.h"
#include "satrap/table/table_spec.h"

namespace satrap::ps {

/// Everything that ranks and shards must agree on, one readable line each: two jobs agree if their
/// lines are equal.
std::vector<std::string> describe_tables(const std::vector<table::TableSpec>& tables,
                                         std::uint64_t seed,
                                         std::int64_t num_shards);

/// The first pair of lines that differ, for an error message; empty if there is none.
std::string first_difference(const std::vector<std::string>& ranks,
                             const std::vector<std::string>& shards);

struct BeginMessage {
  ShardJob job;
  std::vector<std::string> tables;
};
struct JoinMessage {
  std::uint64_t session = 0;
  std::vector<std::string> tables;
};

// To JSON and back. Malformed JSON throws Error(kInvalidData).
std::string to_json(const BeginMessage& message);
std::string to_json(const JoinMessage& message);
std::string to_json(const ShardStats& stats);
std::string to_json(const std::vector<SnapshotFile>& files);
BeginMessage parse_begin(std::span<const std::byte> text);
JoinMessage parse_join(std::span<const std::byte> text);
ShardStats parse_stats(std::span<const std::byte> text);
std::vector<SnapshotFile> parse_snapshot_files(std::span<const std::byte> text);

}  // namespace satrap::ps
