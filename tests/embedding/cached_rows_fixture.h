#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/backend/cache_size.h"
#include "satrap/core/error.h"
#include "src/embedding/divide_cache.h"
#include "tests/embedding/cached_training.h"
#include "tests/embedding/random_bags.h"

namespace satrap::embedding {

/// Three tables in two table groups, with many more rows than a batch needs.
inline std::vector<table::TableSpec> three_tables() {
  std::vector<table::TableSpec> specs = {table_spec(0, 8), table_spec(1, 8),
                                         table_spec(2, 5, RowOptimizerType::kAdam)};
  specs[0].init = {.type = table::InitType::kNormal, .scale = 0.1F};
  specs[1].optimizer.lr = 0.03F;
  specs[1].schedule.warmup_steps = 10;
  specs[2].weights = FloatType::kBf16;
  return specs;
}
inline std::vector<job::FeatureSpec> four_features() {
  return {feature(0), feature(1, Pooling::kMean), feature(2, Pooling::kSequence, 2), feature(0)};
}
inline constexpr std::uint64_t kIds = 1'000;  // of a feature, and three hot ones
inline constexpr std::int64_t kAllRows = 3 * (kIds + 3);

/// Of the slots of that share of all rows.
inline std::int64_t bytes_of_share(double share) {
  const RowLayout layout = three_tables()[0].layout();
  const auto rows = static_cast<std::int64_t>(share * static_cast<double>(kAllRows));
  return rows * (layout.device_stride + backend::CacheSize::kBookkeepingBytes);
}
inline std::int64_t bytes_of_least(backend::EvictionPolicy policy) {
  const bool looks_ahead = policy == backend::EvictionPolicy::kLookahead;
  return backend::CacheSize{1, 0}.bytes(three_tables()[0].layout()) +
         backend::CacheSize{1, 0}.bytes(three_tables()[2].layout()) +
         (looks_ahead ? 2 * backend::CacheSize::kWays * kWindowBytesPerSlot : 0);
}

inline data::Batch next_batch(CachedTraining& training, std::int64_t num_examples = 30) {
  return random_batch(training.random, std::ssize(training.features), num_examples, 3, kIds,
                      training.random() % 2 == 0);
}

/// One table with one feature, and a cache of one set: 32 rows.
class CachedRowsTest : public ::testing::Test {
 protected:
  static std::vector<table::TableSpec> one_table() { return {table_spec(0, 4)}; }
  static std::int64_t one_set() { return backend::CacheSize{1, 0}.bytes(one_table()[0].layout()); }

  CachedTraining& start(CachedTraining::Options options) {
    if (options.memory_bytes == 0) options.memory_bytes = one_set();
    training = std::make_unique<CachedTraining>(one_table(), std::vector{feature(0)}, options);
    return *training;
  }

  /// One example with these ids.
  static data::Batch ids(std::vector<std::uint64_t> bag) { return batch_of({{std::move(bag)}}); }
  static data::Batch range(std::uint64_t begin, std::uint64_t end) {
    std::vector<std::uint64_t> bag;
    for (std::uint64_t id = begin; id < end; ++id) bag.push_back(id);
    return ids(std::move(bag));
  }
  static Key key(std::uint64_t id) { return make_key(TableId{0}, id); }

  void step(data::Batch batch, bool is_skipped = false) {
    training->request(std::move(batch));
    training->look_up();
    training->update(is_skipped);
  }
  std::vector<Key> fetched(std::int64_t number) const {
    return training->gate.records(StoreCall::kFetch)[static_cast<std::size_t>(number - 1)].keys;
  }
  std::string message_of(const std::function<void()>& body) const {
    try {
      body();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

 public:
  std::unique_ptr<CachedTraining> training;
};

}  // namespace satrap::embedding
