// What every RowAccess promises, with tables in this process, on shards, and with a cache before
// either.

#include "satrap/embedding/row_access.h"

#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/backend/device.h"
#include "satrap/core/error.h"
#include "satrap/embedding/cached_rows.h"
#include "satrap/embedding/table_rows.h"
#include "satrap/net/file_rendezvous.h"
#include "satrap/pipeline/shard_rows.h"
#include "satrap/ps/shard_client.h"
#include "satrap/ps/shard_server.h"
#include "satrap/table/table_row_store.h"
#include "tests/embedding/embedding_oracle.h"
#include "tests/embedding/random_bags.h"
#include "tests/support/temporary_directory.h"

namespace satrap::pipeline {
namespace {

using embedding::BatchRows;
using embedding::kTablesSeed;

constexpr std::int64_t kThreads = 3;

/// Some rows and the access to them.
class RowsHome {
 public:
  virtual ~RowsHome() = default;
  virtual embedding::RowAccess& access() = 0;
  virtual table::RowStore& store() = 0;
  virtual void wait_applied(std::int64_t step) = 0;
  virtual void flush() {}  // for reading
  virtual std::int64_t num_rows() = 0;
};

class InTables final : public RowsHome {
 public:
  InTables(const std::vector<job::FeatureSpec>& features,
           const std::vector<table::TableSpec>& specs) {
    std::vector<table::Table*> pointers;
    for (const table::TableSpec& spec : specs) {
      tables_.push_back(std::make_unique<table::Table>(spec, kTablesSeed));
      pointers.push_back(tables_.back().get());
    }
    access_ = std::make_unique<embedding::TableRows>(features, pointers, pool_);
  }
  embedding::RowAccess& access() override { return *access_; }
  table::RowStore& store() override {
    if (!store_) {
      std::vector<table::Table*> pointers;
      for (const auto& table : tables_) pointers.push_back(table.get());
      store_ = std::make_unique<table::TableRowStore>(pointers, pool_);
    }
    return *store_;
  }
  void wait_applied(std::int64_t) override {}
  std::int64_t num_rows() override {
    std::int64_t sum = 0;
    for (const auto& table : tables_) sum += table->num_rows();
    return sum;
  }

 private:
  ThreadPool pool_{kThreads};
  std::vector<std::unique_ptr<table::Table>> tables_;
  std::unique_ptr<embedding::TableRows> access_;
  std::unique_ptr<table::TableRowStore> store_;
};

class OnShards final : public RowsHome {
 public:
  OnShards(std::int64_t num_shards,
           const std::vector<job::FeatureSpec>& features,
           const std::vector<table::TableSpec>& specs)
      : store_(std::make_shared<net::FileRendezvous>(folder_.path() + "/store")) {
    for (std::int64_t s = 0; s < num_shards; ++s) {
      servers_.push_back(std::make_unique<ps::ShardServer>(
          server_end_, *store_, specs, kTablesSeed,
          ps::ShardServerOptions{.shard = s, .num_shards = num_shards}));
    }
    client_ = ps::ShardClient::create(client_end_, store_, specs, kTablesSeed,
                                      {.num_shards = num_shards, .timeout_ms = 60'000});
    client_->begin({.session = 5, .num_ranks = 1, .staleness = 1});
    access_ = std::make_unique<ShardRows>(features, specs, *client_, pool_);
  }
  embedding::RowAccess& access() override { return *access_; }
  table::RowStore& store() override { return *client_; }
  void wait_applied(std::int64_t step) override { client_->wait_applied(step); }
  std::int64_t num_rows() override {
    std::int64_t sum = 0;
    for (const ps::ShardStats& shard : client_->stats()) sum += shard.rows;
    return sum;
  }

 private:
  static net::EndpointOptions options() {
    net::EndpointOptions options;
    options.token = "secret";
    return options;
  }

  const TemporaryDirectory folder_;
  ThreadPool pool_{kThreads};
  std::shared_ptr<net::FileRendezvous> store_;
  net::Endpoint server_end_{options()}, client_end_{options()};
  std::vector<std::unique_ptr<ps::ShardServer>> servers_;
  std::unique_ptr<ps::ShardClient> client_;
  std::unique_ptr<embedding::RowAccess> access_;
};

/// A cache of some rows of another home.
class Cached final : public RowsHome {
 public:
  Cached(std::unique_ptr<RowsHome> home,
         std::int64_t memory_bytes,
         const std::vector<job::FeatureSpec>& features,
         const std::vector<table::TableSpec>& specs)
      : home_(std::move(home)),
        access_(features,
                specs,
                kTablesSeed,
                home_->store(),
                home_->access(),
                *device_,
                pool_,
                {.memory_bytes = memory_bytes, .max_in_flight = 4, .update_delay = 1}) {}
  embedding::RowAccess& access() override { return access_; }
  table::RowStore& store() override { return home_->store(); }
  void wait_applied(std::int64_t) override {}
  void flush() override { access_.flush(); }
  std::int64_t num_rows() override { return home_->num_rows(); }

 private:
  ThreadPool pool_{kThreads};
  const std::unique_ptr<RowsHome> home_;
  const std::unique_ptr<backend::Device> device_ = backend::make_host_device();
  embedding::CachedRows access_;
};

/// Tables that differ in every field, and features of every pooling.
std::vector<table::TableSpec> specs() {
  std::vector<table::TableSpec> specs = {embedding::table_spec(0, 16),
                                         embedding::table_spec(1, 8, RowOptimizerType::kAdam),
                                         embedding::table_spec(2, 3, RowOptimizerType::kFtrl)};
  specs[0].init = {.type = table::InitType::kNormal, .scale = 0.1F};
  specs[0].schedule.warmup_steps = 3;
  specs[1].optimizer.weight_decay = 0.01F;
  return specs;
}

std::vector<job::FeatureSpec> features() {
  using embedding::feature;
  return {feature(0, Pooling::kSum), feature(1, Pooling::kMean), feature(0, Pooling::kSequence, 4),
          feature(2, Pooling::kSqrtN), feature(2, Pooling::kSequence, 1)};
}

struct PlaceOfRows {
  int num_shards;  // 0: tables in this process
  std::int64_t cache_bytes;
};

constexpr std::int64_t kSmallestCache = 3 * 32 * (192 + 18);  // about a set for each table

class RowAccessContract : public testing::TestWithParam<PlaceOfRows> {
 protected:
  RowAccessContract() : oracle_tables_(make_tables()), oracle_(features(), pointers()) {
    const auto [num_shards, cache_bytes] = GetParam();
    if (num_shards == 0) {
      home_ = std::make_unique<InTables>(features(), specs());
    } else {
      home_ = std::make_unique<OnShards>(num_shards, features(), specs());
    }
    if (cache_bytes > 0) {
      home_ = std::make_unique<Cached>(std::move(home_), cache_bytes, features(), specs());
    }
    planner_ = std::make_unique<embedding::Planner>(access().layout(), access().pool());
  }

  embedding::RowAccess& access() { return home_->access(); }

  data::Batch batch(std::int64_t num_rows) {
    return embedding::random_batch(random_, std::ssize(features()), num_rows, 5, 300, true);
  }

  struct Lookup {
    std::vector<float> pooled, mask;
    bool operator==(const Lookup&) const = default;
  };

  Lookup pool(const BatchRows& rows, const data::Batch& batch) {
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    const embedding::FeatureLayout& layout = access().layout();
    Lookup out;
    out.pooled.assign(static_cast<std::size_t>(batch.num_examples * layout.output_width), kNan);
    out.mask.assign(static_cast<std::size_t>(batch.num_examples * layout.mask_width), kNan);
    rows.pool(batch, host_matrix(std::span(out.pooled), batch.num_examples, layout.output_width),
              host_matrix(std::span(out.mask), batch.num_examples, layout.mask_width));
    return out;
  }

  void update(BatchRows& rows,
              const std::vector<float>& grad,
              std::int64_t step,
              embedding::SkipFlag skip = {}) {
    const std::int64_t width = access().layout().output_width;
    rows.update(host_matrix(std::span(grad), std::ssize(grad) / width, width), step, skip);
  }

  Lookup expected(const data::Batch& batch) {
    return {oracle_.forward(batch), oracle_.mask(batch)};
  }

  Lookup read(const data::Batch& batch) {
    home_->flush();
    if (!reader_) reader_ = access().reader().make_rows();
    reader_->read(*planner_, batch);
    return pool(*reader_, batch);
  }

  std::vector<float> gradient(std::size_t size) {
    std::vector<float> values(size);
    for (float& value : values) value = std::uniform_real_distribution(-1.0F, 1.0F)(random_);
    return values;
  }

  void request(BatchRows& rows, const data::Batch& batch, std::int64_t step) {
    rows.make_plan(*planner_, batch, step);
    rows.request(step);
  }

  /// Lookup and update of a step, both compared with the definition.
  void train(BatchRows& rows, const data::Batch& batch, std::int64_t step) {
    request(rows, batch, step);
    rows.wait();
    const Lookup found = pool(rows, batch);
    ASSERT_EQ(found, expected(batch)) << "step " << step;
    const std::vector<float> grad = gradient(found.pooled.size());
    update(rows, grad, step);
    rows.wait_taken();
    home_->wait_applied(step);
    oracle_.backward(batch, grad, step);
  }

  std::unique_ptr<RowsHome> home_;
  std::mt19937_64 random_{17};

 private:
  static std::vector<std::unique_ptr<table::Table>> make_tables() {
    std::vector<std::unique_ptr<table::Table>> tables;
    for (const table::TableSpec& spec : specs()) {
      tables.push_back(std::make_unique<table::Table>(spec, kTablesSeed));
    }
    return tables;
  }
  std::vector<table::Table*> pointers() {
    std::vector<table::Table*> pointers;
    for (const auto& table : oracle_tables_) pointers.push_back(table.get());
    return pointers;
  }

  const std::vector<std::unique_ptr<table::Table>> oracle_tables_;

 protected:
  embedding::EmbeddingOracle oracle_;
  std::unique_ptr<embedding::Planner> planner_;
  std::unique_ptr<BatchRows> reader_;
};

std::string name_of(const testing::TestParamInfo<PlaceOfRows>& place) {
  const auto [num_shards, cache_bytes] = place.param;
  const char* const cache = cache_bytes == 0                ? ""
                            : cache_bytes == kSmallestCache ? "SmallestCache"
                                                            : "Cache";
  return concat(num_shards == 0 ? "Tables" : concat("Shards", num_shards), cache);
}

class RowAccessAhead : public RowAccessContract {};

constexpr PlaceOfRows kPlaces[] = {
    {0, 0}, {1, 0}, {3, 0}, {0, kSmallestCache}, {0, 1 << 20}, {1, kSmallestCache}, {3, 1 << 20}};

INSTANTIATE_TEST_SUITE_P(Places, RowAccessContract, testing::ValuesIn(kPlaces), name_of);
INSTANTIATE_TEST_SUITE_P(Places, RowAccessAhead, testing::ValuesIn(kPlaces), name_of);

TEST_P(RowAccessContract, TrainsAsTheDefinitionBitForBit) {
  const auto rows = access().make_rows();
  for (std::int64_t step = 1; step <= 8; ++step) train(*rows, batch(1 + 37 * (step % 3)), step);
  const data::Batch other = batch(200);
  EXPECT_EQ(read(other), expected(other));
}

TEST_P(RowAccessAhead, BatchesAreRequestedAheadOfEarlierUpdates) {
  const auto first = access().make_rows(), second = access().make_rows();
  const data::Batch batches[] = {batch(50), batch(60)};
  request(*first, batches[0], 1);
  request(*second, batches[1], 2);  // the bound is 1
  first->wait();
  second->wait();
  EXPECT_EQ(pool(*first, batches[0]), expected(batches[0]));
  EXPECT_EQ(pool(*second, batches[1]), expected(batches[1]));  // both of E_0
  std::int64_t step = 0;
  for (BatchRows* rows : {first.get(), second.get()}) {
    const data::Batch& of = batches[step++];
    const std::vector<float> grad =
        gradient(static_cast<std::size_t>(of.num_examples * access().layout().output_width));
    update(*rows, grad, step);
    oracle_.backward(of, grad, step);
  }
  first->wait_taken();
  second->wait_taken();
  home_->wait_applied(2);
  for (const data::Batch& of : batches) EXPECT_EQ(read(of), expected(of));
}

TEST_P(RowAccessContract, PoolsIntoMatricesWithPaddingBetweenRows) {
  const auto rows = access().make_rows();
  const data::Batch planned = batch(30);
  request(*rows, planned, 1);
  rows->wait();
  const Lookup found = pool(*rows, planned);
  const embedding::FeatureLayout& layout = access().layout();
  constexpr float kUntouched = 77.0F;
  HostMatrix both(30, layout.output_width + layout.mask_width + 5);
  std::ranges::fill(both.values(), kUntouched);
  rows->pool(planned, both.columns(2, layout.output_width),
             both.columns(layout.output_width + 4, layout.mask_width));
  for (std::int64_t e = 0; e < 30; ++e) {
    std::vector<float> wanted(2, kUntouched);
    const auto append = [&](const std::vector<float>& values, std::int64_t width) {
      wanted.insert(wanted.end(), values.begin() + e * width, values.begin() + (e + 1) * width);
    };
    append(found.pooled, layout.output_width);
    wanted.insert(wanted.end(), 2, kUntouched);
    append(found.mask, layout.mask_width);
    wanted.push_back(kUntouched);
    const auto begin = both.values().begin() + e * both.cols();
    EXPECT_EQ(std::vector<float>(begin, begin + both.cols()), wanted) << "example " << e;
  }
}

TEST_P(RowAccessContract, ReadingCreatesNothingAndReadsWhatWouldBeCreated) {
  const auto rows = access().make_rows();
  train(*rows, batch(20), 1);
  const std::int64_t before = home_->num_rows();
  EXPECT_GT(before, 0);
  const data::Batch other = batch(100);
  const Lookup found = read(other);
  EXPECT_EQ(home_->num_rows(), before);
  EXPECT_EQ(found, expected(other));
  train(*rows, other, 2);
  EXPECT_GT(home_->num_rows(), before);
}

TEST_P(RowAccessContract, ASkippedStepChangesNoRow) {
  const auto rows = access().make_rows();
  const data::Batch known = batch(30);
  train(*rows, known, 1);
  request(*rows, known, 2);
  rows->wait();
  const Lookup found = pool(*rows, known);
  const float flag = 2.0F;  // two ranks set it
  const float nan = std::numeric_limits<float>::quiet_NaN();
  update(*rows, std::vector<float>(found.pooled.size(), nan), 2, {&flag});
  rows->wait_taken();
  home_->wait_applied(2);
  EXPECT_EQ(read(known), found);
  train(*rows, known, 3);
}

TEST_P(RowAccessContract, AnEmptyBatchIsAStepLikeAnyOther) {
  const auto rows = access().make_rows();
  train(*rows, batch(0), 1);
  train(*rows,
        embedding::batch_of(
            std::vector<std::vector<std::vector<std::uint64_t>>>(features().size(), {{}, {}})),
        2);
  EXPECT_EQ(home_->num_rows(), 0);
  train(*rows, batch(10), 3);
}

TEST_P(RowAccessContract, WhatDoesNotFitThePlanIsRefused) {
  const auto rows = access().make_rows();
  EXPECT_THROW(rows->make_plan(*planner_, embedding::batch_of({{{1}}}), 1), Error);
  const data::Batch planned = batch(10);
  request(*rows, planned, 1);
  rows->wait();
  const Lookup found = pool(*rows, planned);
  std::vector<float> pooled = found.pooled, mask = found.mask;
  const embedding::FeatureLayout& layout = access().layout();
  FloatMatrix out = host_matrix(std::span(pooled), 10, layout.output_width);
  FloatMatrix mask_out = host_matrix(std::span(mask), 10, layout.mask_width);
  EXPECT_THROW(rows->pool(batch(11), out, mask_out), Error);
  EXPECT_THROW(rows->update(out, 0), Error);
  --out.rows;
  EXPECT_THROW(rows->pool(planned, out, mask_out), Error);
  EXPECT_THROW(rows->update(out, 1), Error);
  ++out.rows;
  ++out.stride;
  EXPECT_THROW(rows->update(out, 1), Error);
  --out.stride;
  --mask_out.cols;
  EXPECT_THROW(rows->pool(planned, out, mask_out), Error);
  EXPECT_EQ(pool(*rows, planned), found);  // unchanged
}

}  // namespace
}  // namespace satrap::pipeline
