#include "src/ps/shard_messages.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "satrap/core/error.h"
#include "satrap/core/json.h"

namespace satrap::ps {
namespace {

using nlohmann::json;

/// Adds a line for each property that may differ.
void describe(const table::TableSpec& table, std::vector<std::string>& lines) {
  const auto add = [&](const char* name, const auto& value) {
    // fmt writes the shortest text that reads back as the same number.
    lines.push_back(
        fmt::format("table {} '{}': {} {}", static_cast<int>(table.id), table.name, name, value));
  };
  const RowOptimizer& optimizer = table.optimizer;
  const LrSchedule& schedule = table.schedule;
  add("dim", table.dim);
  add("weights", name_of(table.weights));
  add("capacity_rows", table.limits.capacity_rows);
  add("ttl_steps", table.limits.ttl_steps);
  add("pinned_steps", table.limits.pinned_steps);
  add("admit_after", table.limits.admit_after);
  add("init", name_of(table.init.type));
  add("init scale", table.init.scale);
  add("optimizer", name_of(optimizer.type));
  for (const RowOption& option : kRowOptions) add(option.name, optimizer.*option.value);
  add("warmup_steps", schedule.warmup_steps);
  add("decay", word_of(schedule.decay, kRateDecays));
  add("decay_steps", schedule.decay_steps);
  add("decay_rate", schedule.decay_rate);
  add("min_factor", schedule.min_factor);
}

table::StalenessBound staleness_of(const json& in) {
  const auto max = integer_at(in, "staleness");
  const auto factor = in.at("staleness_factor").get<double>();
  if (max < 0 || !(factor >= 0.0 && factor <= 1.0)) {
    throw Error(ErrorCode::kInvalidData,
                concat("staleness ", max, " with factor ", factor, " is not a bound"));
  }
  return {max, factor};
}

template <class Parse>
auto parsed(const char* what, std::span<const std::byte> text, Parse&& parse) {
  try {
    const auto* begin = reinterpret_cast<const char*>(text.data());
    return parse(json::parse(begin, begin + text.size()));
  } catch (const json::exception& error) {
    throw Error(ErrorCode::kInvalidData, concat("not a ", what, " message: ", error.what()));
  }
}

}  // namespace

std::vector<std::string> describe_tables(const std::vector<table::TableSpec>& tables,
                                         std::uint64_t seed,
                                         std::int64_t num_shards) {
  std::vector<std::string> lines{concat("seed ", seed), concat("number of shards ", num_shards),
                                 concat("number of tables ", tables.size())};
  for (const table::TableSpec& table : tables) describe(table, lines);
  return lines;
}

std::string first_difference(const std::vector<std::string>& ranks,
                             const std::vector<std::string>& shards) {
  const auto line = [](const std::vector<std::string>& lines, std::size_t i) {
    return i < lines.size() ? lines[i] : std::string("nothing");
  };
  for (std::size_t i = 0; i < std::max(ranks.size(), shards.size()); ++i) {
    if (line(ranks, i) == line(shards, i)) continue;
    return concat("the rank has ", line(ranks, i), "; the shard has ", line(shards, i));
  }
  return {};
}

std::string to_json(const BeginMessage& message) {
  const ShardJob& job = message.job;
  json files = json::array();
  for (const table::RowFile& file : job.row_files) {
    files.push_back({{"path", file.path},
                     {"table", file.table},
                     {"row_bytes", file.row_bytes},
                     {"bytes", file.bytes},
                     {"xxh3", file.xxh3},
                     {"is_packed", file.is_packed},
                     {"part", file.part},
                     {"num_parts", file.num_parts},
                     {"weights_only", file.weights_only}});
  }
  return json{{"session", job.session},
              {"num_ranks", job.num_ranks},
              {"async", job.async},
              {"staleness", job.staleness.max()},
              {"staleness_factor", job.staleness.factor()},
              {"deterministic", job.deterministic},
              {"first_step", job.first_step},
              {"is_cached", job.is_cached},
              {"row_files", files},
              {"tables", message.tables}}
      .dump();
}

BeginMessage parse_begin(std::span<const std::byte> text) {
  return parsed("begin", text, [](const json& in) {
    BeginMessage message;
    ShardJob& job = message.job;
    job.session = integer_at<std::uint64_t>(in, "session");
    job.num_ranks = integer_at(in, "num_ranks");
    in.at("async").get_to(job.async);
    job.staleness = staleness_of(in);
    in.at("deterministic").get_to(job.deterministic);
    job.first_step = integer_at(in, "first_step");
    in.at("is_cached").get_to(job.is_cached);
    for (const json& file : in.at("row_files")) {
      job.row_files.push_back({file.at("path"), integer_at<std::int32_t>(file, "table"),
                               integer_at(file, "row_bytes"), integer_at(file, "bytes"),
                               file.at("xxh3"), file.at("is_packed"), integer_at(file, "part"),
                               integer_at(file, "num_parts"), file.at("weights_only")});
    }
    in.at("tables").get_to(message.tables);
    return message;
  });
}

std::string to_json(const JoinMessage& message) {
  return json{{"session", message.session}, {"tables", message.tables}}.dump();
}

JoinMessage parse_join(std::span<const std::byte> text) {
  return parsed("join", text, [](const json& in) {
    return JoinMessage{integer_at<std::uint64_t>(in, "session"), in.at("tables")};
  });
}

std::string to_json(const ShardStats& stats) {
  return json{{"rows", stats.rows},
              {"table_bytes", stats.table_bytes},
              {"resident_bytes", stats.resident_bytes},
              {"cpu_seconds", stats.cpu_seconds},
              {"applied_step", stats.applied_step},
              {"repeated_requests", stats.repeated_requests},
              {"staleness_histogram", stats.staleness_histogram}}
      .dump();
}

ShardStats parse_stats(std::span<const std::byte> text) {
  return parsed("statistics", text, [](const json& in) {
    ShardStats stats;
    stats.rows = integer_at(in, "rows");
    stats.table_bytes = integer_at(in, "table_bytes");
    stats.resident_bytes = integer_at(in, "resident_bytes");
    in.at("cpu_seconds").get_to(stats.cpu_seconds);
    stats.applied_step = integer_at(in, "applied_step");
    stats.repeated_requests = integer_at(in, "repeated_requests");
    for (const json& pulls : in.at("staleness_histogram")) {
      stats.staleness_histogram.push_back(integer_of<std::int64_t>(pulls));
    }
    return stats;
  });
}

std::string to_json(const std::vector<SnapshotFile>& files) {
  json out = json::array();
  for (const SnapshotFile& file : files) {
    out.push_back({{"table", file.table},
                   {"name", file.name},
                   {"rows", file.rows},
                   {"row_bytes", file.row_bytes},
                   {"bytes", file.bytes},
                   {"xxh3", file.xxh3}});
  }
  return out.dump();
}

std::vector<SnapshotFile> parse_snapshot_files(std::span<const std::byte> text) {
  return parsed("snapshot", text, [](const json& in) {
    std::vector<SnapshotFile> files;
    for (const json& file : in) {
      files.push_back({integer_at<std::int32_t>(file, "table"), file.at("name"),
                       integer_at(file, "rows"), integer_at(file, "row_bytes"),
                       integer_at(file, "bytes"), file.at("xxh3")});
    }
    return files;
  });
}

}  // namespace satrap::ps
