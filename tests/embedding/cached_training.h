#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/backend/device.h"
#include "satrap/backend/memory.h"
#include "satrap/embedding/cached_rows.h"
#include "satrap/embedding/table_rows.h"
#include "satrap/table/staleness_bound.h"
#include "satrap/table/table_row_store.h"
#include "satrap/table/table_snapshot.h"
#include "tests/embedding/embedding_oracle.h"
#include "tests/embedding/gated_row_store.h"
#include "tests/embedding/random_bags.h"

namespace satrap::embedding {

/// Tables of the tests, and all their rows as bytes.
struct TestTables {
  using Rows = std::map<Key, std::vector<std::byte>>;

  explicit TestTables(const std::vector<table::TableSpec>& specs) {
    for (const table::TableSpec& spec : specs) {
      tables.push_back(std::make_unique<table::Table>(spec, kTablesSeed));
      pointers.push_back(tables.back().get());
    }
  }

  void register_rows(backend::Device& device) const {
    for (table::Table* table : pointers) {
      table->register_blocks([&device](std::byte* pages, std::int64_t bytes) {
        return std::make_shared<backend::HostRegistration>(device, pages, bytes);
      });
    }
  }

  /// All rows that have been updated, as a snapshot has them. Other threads may fetch and put.
  Rows updated_rows() const {
    Rows rows;
    for (table::Table* table : pointers) {
      const auto row_bytes = static_cast<std::size_t>(table->row_bytes());
      table::TableSnapshot(*table, kMaxStep).write([&](std::span<const std::byte> block) {
        for (; !block.empty(); block = block.subspan(row_bytes)) {
          RowHeader header;
          std::memcpy(&header, block.data(), sizeof(header));
          rows[header.key].assign(block.begin(),
                                  block.begin() + static_cast<std::ptrdiff_t>(row_bytes));
        }
      });
    }
    return rows;
  }

  std::vector<std::unique_ptr<table::Table>> tables;
  std::vector<table::Table*> pointers;
};

/// The first few differences; "" if there are none.
inline std::string differences(const TestTables::Rows& found, const TestTables::Rows& expected) {
  std::string text;
  int count = 0;
  const auto describe = [&](Key key, const char* what) {
    if (++count > 5) return;
    text += concat("table ", static_cast<int>(table_of(key)), " mixed id ", mixed_id_of(key), ": ",
                   what, "; ");
  };
  for (const auto& [key, row] : expected) {
    const auto at = found.find(key);
    if (at == found.end()) {
      describe(key, "is missing");
    } else if (at->second != row) {
      RowHeader is, wanted;
      std::memcpy(&is, at->second.data(), sizeof(is));
      std::memcpy(&wanted, row.data(), sizeof(wanted));
      describe(key, concat("differs: step ", is.last_step, " count ", is.count, " instead of step ",
                           wanted.last_step, " count ", wanted.count)
                        .c_str());
    }
  }
  for (const auto& [key, row] : found) {
    if (!expected.contains(key)) describe(key, "should not be there");
  }
  return count > 5 ? concat(text, count, " in all") : text;
}

/// Rows in a cache before tables behind a gate, trained in the order of deterministic hybrid(τ),
/// with plans and requests ahead of lookups. Every lookup and, where a test looks, every row is
/// compared with the definition and with the same training in place.
class CachedTraining {
 public:
  struct Options {
    std::int64_t memory_bytes = 0;
    backend::EvictionPolicy policy = backend::EvictionPolicy::kLfu;
    table::StalenessBound staleness = 0;
    std::int64_t prefetch = 2;        // batches that are requested before they are looked up
    std::int64_t max_look_ahead = 0;  // under EvictionPolicy::kLookahead
    std::int64_t num_fetches = 8;
    std::int64_t num_threads = 1;
    bool is_registered = false;  // the device reads rows in the tables
    bool is_late = false;        // the store answers late and in random order
    std::uint64_t seed = 1;
    backend::Device* device = nullptr;  // nullptr: the host
  };

  CachedTraining(const std::vector<table::TableSpec>& specs,
                 const std::vector<job::FeatureSpec>& of_features,
                 const Options& the_options)
      : random(the_options.seed),
        options(the_options),
        features(of_features),
        pool(options.num_threads),
        home(specs),
        in_place(specs),
        store(home.pointers, pool),
        gate(store),
        uncached(features, home.pointers, pool),
        reference(features, in_place.pointers, pool),
        oracle(features, in_place.pointers),
        cached(std::make_unique<CachedRows>(
            features,
            specs,
            kTablesSeed,
            gate,
            uncached,
            device,
            pool,
            CachedRows::Options{.memory_bytes = options.memory_bytes,
                                .policy = options.policy,
                                .max_in_flight = max_in_flight(),
                                .update_delay = options.staleness,
                                .max_look_ahead = options.max_look_ahead,
                                .num_fetches = options.num_fetches,
                                .reads_in_store = options.is_registered})),
        planner(cached->layout(), pool),
        reference_planner(reference.layout(), pool) {
    if (options.is_registered) home.register_rows(device);
    if (!options.is_late) return;
    gate.close(StoreCall::kFetch);
    gate.close(StoreCall::kPut);
  }
  ~CachedTraining() {
    gate.open_all();
    cached->stop();
    steps.clear();
    free_rows.clear();
    reader.reset();
    cached.reset();
  }

  std::int64_t max_in_flight() const { return options.prefetch + options.staleness.max() + 2; }

  struct Step {
    data::Batch batch;
    std::unique_ptr<BatchRows> rows, reference;
    std::int64_t fetch = 0;  // the number of its call; 0: none
  };

  /// Plans and requests the next step.
  void request(data::Batch batch) {
    const std::int64_t step = ++num_requested;
    Step& next = steps[step];
    next.batch = std::move(batch);
    next.rows = take_rows();
    next.reference = reference.make_rows();
    const std::int64_t bytes_before = cached->counts().bytes_fetched;
    next.rows->make_plan(planner, next.batch, step);
    next.rows->request(step);
    next.reference->make_plan(reference_planner, next.batch, step);
    num_needed += std::ssize(static_cast<const PlannedRows&>(*next.reference).plan().keys);
    if (options.is_late && cached->counts().bytes_fetched > bytes_before) {
      next.fetch = ++num_fetched;
      outstanding.push_back(step);
      gate.wait_for_waiting(StoreCall::kFetch, outstanding.size());
    }
  }

  /// Lets the fetches of steps up to `step`, and some of later ones, be answered in random order.
  void answer(std::int64_t step) {
    if (!options.is_late) return;
    std::vector<std::int64_t> chosen;
    std::erase_if(outstanding, [&](std::int64_t other) {
      if (other > step && random() % 3 != 0) return false;
      chosen.push_back(steps[other].fetch);
      return true;
    });
    std::ranges::shuffle(chosen, random);
    for (const std::int64_t fetch : chosen) gate.let(StoreCall::kFetch, fetch);
    if (random() % 3 == 0) gate.let_all(StoreCall::kPut, random);
  }

  struct Lookup {
    std::vector<float> pooled, mask;
    bool operator==(const Lookup&) const = default;
  };
  Lookup pool_of(const BatchRows& rows, const data::Batch& batch) const {
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    const FeatureLayout& layout = cached->layout();
    Lookup out;
    out.pooled.assign(static_cast<std::size_t>(batch.num_examples * layout.output_width), kNan);
    out.mask.assign(static_cast<std::size_t>(batch.num_examples * layout.mask_width), kNan);
    rows.pool(batch, host_matrix(std::span(out.pooled), batch.num_examples, layout.output_width),
              host_matrix(std::span(out.mask), batch.num_examples, layout.mask_width));
    return out;
  }

  void look_up() {
    const std::int64_t step = ++num_looked_up;
    Step& looked_up = steps.at(step);
    answer(step);
    looked_up.rows->wait();
    const Lookup found = pool_of(*looked_up.rows, looked_up.batch);
    const Lookup expected = {oracle.forward(looked_up.batch), oracle.mask(looked_up.batch)};
    ASSERT_EQ(found == expected, true) << "lookup of step " << step;
  }

  /// The next update; or the next skip, of a step that was not finite.
  void update(bool is_skipped = false) {
    const std::int64_t step = ++num_updated;
    Step& updated = steps.at(step);
    const std::int64_t width = cached->layout().output_width;
    std::vector<float> gradient(static_cast<std::size_t>(updated.batch.num_examples * width));
    for (float& value : gradient) value = std::uniform_real_distribution(-1.0F, 1.0F)(random);
    if (is_skipped) std::ranges::fill(gradient, std::numeric_limits<float>::quiet_NaN());
    const ConstFloatMatrix matrix =
        host_matrix(std::span(std::as_const(gradient)), updated.batch.num_examples, width);
    const float flag = is_skipped ? 1.0F : 0.0F;
    updated.rows->update(matrix, step, {&flag});
    updated.rows->wait_taken();
    updated.reference->update(matrix, step, {&flag});
    if (!is_skipped) oracle.backward(updated.batch, gradient, step);
    free_rows.push_back(std::move(updated.rows));
    steps.erase(step);
  }

  /// The next of `num_batches`, once it and those after it have been shown to the cache.
  template <class NextBatch>
  data::Batch show(std::int64_t num_batches, NextBatch next_batch) {
    const auto read = [&] {
      if (num_requested + std::ssize(ahead) >= num_batches) return;
      ahead.push_back(next_batch());
      cached->look_at(ahead.back(), num_requested + std::ssize(ahead));
    };
    if (ahead.empty()) read();
    if (std::ssize(ahead) <= cached->look_ahead()) read();
    data::Batch first = std::move(ahead.front());
    ahead.pop_front();
    return first;
  }

  /// Takes the batches through all stages; calls `between` after each update.
  template <class NextBatch, class Between>
  void train(std::int64_t num_steps, NextBatch next_batch, Between between) {
    const std::int64_t end = num_requested + num_steps;
    while (num_updated < end) {
      while (num_looked_up < std::min(end, options.staleness.last_reader(num_updated))) {
        while (num_requested < std::min(end, num_looked_up + 1 + options.prefetch)) {
          request(show(end, next_batch));
        }
        look_up();
        if (testing_has_failed()) return;
      }
      update(random() % 10 == 0);
      between();
      if (testing_has_failed()) return;
    }
  }

  /// Reads a batch as an evaluation does, between two steps.
  void read(const data::Batch& batch) {
    gate.open(StoreCall::kPut);
    cached->flush();
    if (!reader) reader = cached->reader().make_rows();
    reader->read(planner, batch);
    const Lookup found = pool_of(*reader, batch);
    if (options.is_late) gate.close(StoreCall::kPut);
    std::map<Key, EmbeddingOracle::Row> rows = oracle.rows();
    const Lookup expected = {oracle.forward(batch), oracle.mask(batch)};
    oracle.rows() = std::move(rows);  // reading creates none
    ASSERT_EQ(found == expected, true) << "evaluation after step " << num_updated;
  }

  /// Saves as a checkpoint does: compares all rows in the tables, at the moment when the action is
  /// called, with those of training in place now.
  void save() {
    cached->save([this, step = num_updated, expected = in_place.updated_rows()] {
      const std::string wrong = differences(home.updated_rows(), expected);
      const std::lock_guard lock(mutex);
      ++num_saved;
      if (!wrong.empty()) wrong_snapshots += concat("snapshot of step ", step, ": ", wrong, '\n');
    });
    ++num_saves;
  }

  /// Whatever was changed is in the tables, and nothing else.
  void expect_rows() {
    gate.open_all();
    cached->flush();
    EXPECT_EQ(differences(home.updated_rows(), in_place.updated_rows()), "");
    for (const auto& [key, row] : in_place.updated_rows()) expect_oracle(key, row.data());
    const std::lock_guard lock(mutex);
    EXPECT_EQ(wrong_snapshots, "");
    EXPECT_EQ(num_saved, num_saves);
  }

  std::mt19937_64 random;
  const Options options;
  const std::vector<job::FeatureSpec> features;
  ThreadPool pool;
  const std::unique_ptr<backend::Device> host = backend::make_host_device(&pool);
  backend::Device& device = options.device != nullptr ? *options.device : *host;
  TestTables home, in_place;
  table::TableRowStore store;
  GatedRowStore gate;
  TableRows uncached, reference;
  EmbeddingOracle oracle;
  std::unique_ptr<CachedRows> cached;
  Planner planner, reference_planner;
  std::deque<data::Batch> ahead;       // shown and not requested
  std::map<std::int64_t, Step> steps;  // in flight
  std::vector<std::unique_ptr<BatchRows>> free_rows;
  std::unique_ptr<BatchRows> reader;
  std::vector<std::int64_t> outstanding;  // steps whose fetch is at the gate
  std::int64_t num_requested = 0, num_looked_up = 0, num_updated = 0, num_fetched = 0;
  std::int64_t num_needed = 0;  // rows, each once per batch
  std::mutex mutex;
  std::int64_t num_saves = 0, num_saved = 0;
  std::string wrong_snapshots;

 private:
  static bool testing_has_failed() { return ::testing::Test::HasFatalFailure(); }

  std::unique_ptr<BatchRows> take_rows() {
    if (free_rows.empty()) return cached->make_rows();
    std::unique_ptr<BatchRows> rows = std::move(free_rows.back());
    free_rows.pop_back();
    return rows;
  }

  void expect_oracle(Key key, const std::byte* row) {
    const table::Table& table = *in_place.pointers[static_cast<std::size_t>(table_of(key))];
    const EmbeddingOracle::Row& expected = oracle.rows().at(key);
    EmbeddingOracle::Row found = expected;
    table.layout().read_weights(row, found.weights.data());
    const auto* const state = reinterpret_cast<const float*>(row + table.layout().state_offset);
    std::ranges::copy_n(state, std::ssize(found.state), found.state.begin());
    EXPECT_EQ(found.weights, expected.weights);
    EXPECT_EQ(found.state, expected.state);
  }
};

}  // namespace satrap::embedding
