#include "satrap/job/embedding_config.h"

#include "satrap/core/error.h"
#include "satrap/core/text.h"

namespace satrap::job {

void CacheConfig::visit(ConfigVisitor& v) {
  v.field(
      "memory", memory,
      "Memory for a cache of rows, such as 4GiB or 10% of the machine's memory (device cuda: of "
      "what "
      "is free on each rank's GPU), in which they are "
      "trained (or, with policy shared, of copies); changed rows return to where rows live in the "
      "background. Mostly for rows on shards. Several ranks, of one node, divide the keys among "
      "them: each keeps this much (a share is divided), and without train.deterministic their "
      "staleness is at most 1. Rows of batches that are in use at the same time come in addition. "
      "auto: 10% if rows are on shards, else 0; 50% with device cuda. 0: no cache. The results are "
      "the same, bit for bit "
      "in deterministic mode.");
  v.field(
      "eviction", eviction,
      "Which row makes room. lookahead: the one that the next batches need last; they are read "
      "ahead to know, six times as many as the cache holds. lfu: the one needed least often. "
      "lru: the one needed longest ago. auto: lookahead, with several ranks lfu: to them, looking "
      "ahead pays where the store is slow.",
      {.one_of = {"auto", "lookahead", "lfu", "lru"}});
  v.field("policy", policy,
          "What the cache holds. exclusive: the rows themselves, which are trained in it. shared: "
          "copies of rows that the shards train, as each rank needs them; a row is sent again only "
          "if it has changed and, unless train.deterministic, its copy is older than the staleness "
          "bound allows. auto: shared for ranks on several nodes, else exclusive.",
          {.one_of = {"auto", "exclusive", "shared"}});
  v.field(
      "host_rows", host_rows,
      "How rows that the cache lacks come out of tables in the trainer's process. staged: "
      "threads copy them to where the device reads them. registered: a GPU reads them in the "
      "tables, whose memory is registered with the driver: all of it is then resident and "
      "locked, up to twice the bytes of the rows. Where memory is short, or the driver refuses, "
      "rows are staged, and the log says so once. Not measured yet on a GPU; the results are "
      "the same, bit for bit.",
      {.one_of = {"staged", "registered"}});
}

std::int64_t CacheConfig::memory_bytes(std::int64_t device_bytes) const {
  const std::string share = is_on_gpu ? "50%" : "10%";
  return parse_bytes_or_share(memory == "auto" ? share : memory, device_bytes);
}

bool EmbeddingConfig::has_cache() const {
  constexpr std::int64_t kAnyDevice = std::int64_t{1} << 40;
  return (cache.memory != "auto" || store == "ps" || cache.is_on_gpu) &&
         cache.memory_bytes(kAnyDevice) > 0;
}

bool EmbeddingConfig::keeps_copies(const ClusterConfig& cluster) const {
  const std::int64_t local = cluster.num_local_ranks;
  const bool has_several_nodes = local != 0 && local < cluster.num_ranks;
  return has_cache() && (cache.policy == "shared" || (cache.policy == "auto" && has_several_nodes));
}

void EmbeddingConfig::visit(ConfigVisitor& v) {
  v.field(
      "store", store,
      "Where the rows live. embedded: in the trainer's process. ps: on parameter-server shards, "
      "which satrap-run --ps starts; needed for several ranks.",
      {.one_of = {"embedded", "ps"}});
  v.field("wire", wire,
          "How weights and gradients travel between ranks and shards. bf16 and fp16 halve the "
          "bytes and round to nearest; the stored rows are not rounded.",
          {.one_of = {"fp32", "bf16", "fp16"}});
  v.section("cache", cache, "A cache of rows in the trainer's process.");
}

void EmbeddingConfig::validate(const ConfigOrigins& origins) const {
  const std::string section = "embedding.cache.";
  const auto refuse = [&](const std::string& field, const std::string& why) {
    throw Error(ErrorCode::kInvalidConfig, concat(section, field, ": ", why));
  };
  bool is_on = false;
  try {
    is_on = has_cache();
  } catch (const Error& error) {
    refuse("memory", error.what());
  }
  if (!is_on) {
    // A memory of 0 that is written turns off a cache for which the rest may stay.
    for (const char* const field : {"eviction", "policy", "host_rows"}) {
      if (!origins.contains(section + field) || origins.contains(section + "memory")) continue;
      refuse(field, concat("there is no cache; set ", section, "memory, or leave it out"));
    }
    return;
  }
  if (cache.host_rows == "registered" && store != "embedded") {
    refuse("host_rows", concat("registered is for tables in the trainer's process, and the rows of "
                               "embedding.store: ",
                               store, " are in others; write staged"));
  }
  if (cache.policy == "shared" && store != "ps") {
    refuse("policy", "shared is for rows on shards; write embedding.store: ps, or exclusive");
  }
  if (cache.policy != "shared" && wire != "fp32") {
    refuse("memory",
           concat("whole rows travel to and from a cache as they are stored; embedding.wire ", wire,
                  " has no effect then, write fp32, or ", section, "policy: shared"));
  }
}

}  // namespace satrap::job
