#include "satrap/job/embedding_config.h"

#include "satrap/core/error.h"
#include "satrap/core/text.h"

namespace satrap::job {

void CacheConfig::visit(ConfigVisitor& v) {
  v.field(
      "memory", memory,
      "Memory for a cache of rows, such as 4GiB or 10% of the machine's memory (device cuda: of "
      "what is free on each rank's GPU), in which they are trained; changed rows return to where "
      "rows live in the background. Mostly for rows on shards. Several ranks divide the keys among "
      "them: each keeps this much (a share is divided), and without train.deterministic their "
      "staleness is at most 1. Rows of batches that are in use at the same time come in addition. "
      "auto: 10% if rows are on shards, else 0; 50% with device cuda; none for ranks on several "
      "nodes. 0: no cache. The results are the same, bit for bit in deterministic mode.");
  v.choice(
      "eviction", eviction, kEvictions,
      "Which row makes room. lookahead: the one that the next batches need last; they are read "
      "ahead to know, six times as many as the cache holds. lfu: the one needed least often. lru: "
      "the one needed longest ago. auto: lookahead, with several ranks lfu: to them, looking ahead "
      "pays where the store is slow.");
  v.former("policy", former_policy);
  v.choice(
      "host_rows", host_rows, kHostRows,
      "How rows that the cache lacks come out of tables in the trainer's process. staged: threads "
      "copy them to where the device reads them. registered: a GPU reads them in the tables, whose "
      "memory is registered with the driver: all of it is then resident and locked, up to twice "
      "the bytes of the rows. Where memory is short, or the driver refuses, rows are staged, and "
      "the log says so once. Not measured yet on a GPU; the results are the same, bit for bit.");
}

std::int64_t CacheConfig::memory_bytes(std::int64_t device_bytes) const {
  const std::string share = is_on_gpu ? "50%" : "10%";
  return parse_bytes_or_share(memory == "auto" ? share : memory, device_bytes);
}

bool EmbeddingConfig::has_cache() const {
  constexpr std::int64_t kAnyDevice = std::int64_t{1} << 40;
  return (cache.memory != "auto" || store == StoreKind::kPs || cache.is_on_gpu) &&
         cache.memory_bytes(kAnyDevice) > 0;
}

void EmbeddingConfig::visit(ConfigVisitor& v) {
  v.choice(
      "store", store, kRowStores,
      "Where the rows live. embedded: in the trainer's process. ps: on parameter-server shards, "
      "which satrap-run --ps starts; needed for several ranks.");
  v.choice("wire", wire, numbered_choices<FloatType>(kFloatTypeNames),
           "How weights and gradients travel between ranks and shards. bf16 and fp16 halve the "
           "bytes and round to nearest; the stored rows are not rounded.");
  v.section("cache", cache, "A cache of rows in the trainer's process.", kSameTraining);
}

void EmbeddingConfig::validate(const ConfigOrigins& origins) const {
  const std::string section = "embedding.cache.";
  const auto refuse = [&](const std::string& field, const std::string& why) {
    throw Error(ErrorCode::kInvalidConfig, concat(section, field, ": ", why));
  };
  // What the other two values said is so: on one node for `auto`.
  if (const std::string& former = cache.former_policy;
      !former.empty() && former != "auto" && former != "exclusive") {
    refuse("policy", former == "shared"
                         ? concat("copies of rows are no longer kept; leave it out, and write ",
                                  section, "memory: 0")
                         : "there is one policy of caches now; leave it out");
  }
  bool is_on = false;
  try {
    is_on = has_cache();
  } catch (const Error& error) {
    refuse("memory", error.what());
  }
  if (!is_on) {
    // A memory of 0 that is written turns off a cache for which the rest may stay.
    for (const char* const field : {"eviction", "host_rows"}) {
      if (!origins.contains(section + field) || origins.contains(section + "memory")) continue;
      refuse(field, concat("there is no cache; set ", section, "memory, or leave it out"));
    }
    return;
  }
  if (cache.host_rows == HostRows::kRegistered && store != StoreKind::kEmbedded) {
    refuse("host_rows", concat("registered is for tables in the trainer's process, and the rows of "
                               "embedding.store: ",
                               word_of(store, kRowStores), " are in others; write staged"));
  }
}

}  // namespace satrap::job
