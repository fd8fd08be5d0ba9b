#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/backend/cache_size.h"
#include "satrap/core/file.h"
#include "satrap/pipeline/cached_tables.h"
#include "satrap/pipeline/local_tables.h"
#include "satrap/pipeline/row_reader.h"
#include "satrap/pipeline/stages.h"
#include "src/embedding/divide_cache.h"
#include "tests/embedding/gated_row_store.h"
#include "tests/embedding/random_bags.h"
#include "tests/pipeline/rank_threads.h"
#include "tests/support/host_ranks.h"
#include "tests/support/temporary_directory.h"

namespace satrap::pipeline {

/// The ids of an example, by feature.
using Example = std::vector<std::vector<std::uint64_t>>;

/// Tables that several ranks share, each as its own.
class BorrowedTables final : public EmbeddingTables {
 public:
  BorrowedTables(EmbeddingTables& tables, std::function<void()> before_snapshot)
      : tables_(tables), before_snapshot_(std::move(before_snapshot)) {}
  void begin(const InitialRows&) override {}
  embedding::RowAccess& access() override { return tables_.access(); }
  std::unique_ptr<StepDriver> make_driver(StepQueue& queue,
                                          StepDriver::Options options,
                                          StageTimers& timers) override {
    return tables_.make_driver(queue, std::move(options), timers);
  }
  std::unique_ptr<RowsSnapshot> take_snapshot(std::int64_t step) override {
    if (before_snapshot_) before_snapshot_();
    return tables_.take_snapshot(step);
  }
  Size size() override { return tables_.size(); }

 private:
  EmbeddingTables& tables_;
  const std::function<void()> before_snapshot_;
};

/// Ranks that train two table groups in a partitioned cache before tables of this process. The
/// gradient of the pooled rows is their distance from a number of the example.
class PartitionedTraining {
 public:
  /// Shares of the ranks in the global batch of a step.
  using Shares = std::vector<std::vector<Example>>;
  struct Options {
    std::int64_t num_ranks = 2, num_steps = 20, threads = 1;
    std::int64_t cache_rows = 64;  // of each group, about
    std::int64_t staleness = 0, in_flight_beyond = 2;
    std::int64_t max_look_ahead = 0;  // 0: evicts by frequency
    bool deterministic = true;
    bool on_devices = false;  // weights and gradients stay in the memory of the caches
    std::set<std::int64_t> not_finite = {};  // steps
    std::int64_t timeout_ms = 60'000;
    std::function<void()> before_snapshot = {};  // called where the tables take one
  };

  static job::EmbeddingSpecs specs() {
    std::vector<table::TableSpec> tables = {embedding::table_spec(0, 4),
                                            embedding::table_spec(1, 6, RowOptimizerType::kAdam),
                                            embedding::table_spec(2, 4)};
    for (table::TableSpec& table : tables) table.optimizer.lr = 0.01F;
    return {.tables = tables,
            .features = {embedding::feature(0), embedding::feature(1), embedding::feature(2),
                         embedding::feature(0)},
            .seed = 7};
  }

  explicit PartitionedTraining(const Options& options)
      : options_(options), local_(specs(), pool_), store_(local_.row_store()) {
    threads_.job.cluster.timeout = std::to_string(options.timeout_ms) + "ms";
    for (std::int64_t r = 0; r < options.num_ranks; ++r) {
      stores_.push_back(std::make_unique<embedding::GatedRowStore>(store_));
    }
  }
  ~PartitionedTraining() {
    for (const auto& store : stores_) store->open_all();
  }

  /// Of a rank, for what a test does between its steps.
  struct Rank {
    std::int64_t number;
    Cluster& cluster;
    CachedTables& tables;
    StepDriver& driver;
    collective::Communicator& group;
  };
  /// `after` is called by every rank once the updates of a step are applied.
  using After = std::function<void(Rank&, std::int64_t step)>;

  /// Returns the error of each rank; "": none. `on_end` is called where a rank has ended.
  std::vector<std::string> run(const std::function<Shares(std::int64_t)>& shares_of,
                               const After& after = {},
                               const std::function<void(std::int64_t)>& on_end = {}) {
    std::vector<std::string> errors(static_cast<std::size_t>(options_.num_ranks));
    threads_.run(options_.num_ranks, [&](Cluster& cluster) {
      try {
        train(cluster, shares_of, after);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(cluster.rank())] = error.what();
      }
      if (on_end) on_end(cluster.rank());
    });
    return errors;
  }

  /// All rows of the tables, with headers and states, in the order of their bytes.
  std::string rows() { return content(*local_.take_snapshot(options_.num_steps)); }
  static std::string content(RowsSnapshot& snapshot) {
    const TemporaryDirectory directory;
    std::string all;
    for (const ps::SnapshotFile& file : snapshot.write(directory.path())) {
      const std::string text = read_file(directory.path() + "/" + file.name);
      std::vector<std::string> rows;
      for (std::size_t at = 0; at < text.size(); at += static_cast<std::size_t>(file.row_bytes)) {
        rows.push_back(text.substr(at, static_cast<std::size_t>(file.row_bytes)));
      }
      std::ranges::sort(rows);
      for (const std::string& row : rows) all += row;
    }
    return all;
  }

  /// The weights of ids below `num_ids`, in all tables.
  std::vector<float> weights(std::uint64_t num_ids) { return weights_in(local_, num_ids); }
  static std::vector<float> weights_in(EmbeddingTables& tables, std::uint64_t num_ids) {
    return pooled(tables.access(), one_by_one(num_ids));
  }
  static std::vector<Example> one_by_one(std::uint64_t num_ids) {
    std::vector<Example> examples;
    for (std::uint64_t id = 0; id < num_ids; ++id) examples.push_back({{id}, {id}, {id}, {}});
    return examples;
  }
  static std::vector<float> pooled(embedding::RowAccess& access,
                                   const std::vector<Example>& examples) {
    RowReader reader(access);
    PooledBatch inputs;
    reader.look_up(batch_of(examples), inputs);
    return inputs.pooled_values();
  }

  static data::Batch batch_of(const std::vector<Example>& examples) {
    std::vector<std::vector<std::vector<std::uint64_t>>> bags(specs().features.size());
    for (std::size_t f = 0; f < bags.size(); ++f) {
      for (const Example& example : examples) bags[f].push_back(example[f]);
    }
    return embedding::batch_of(bags);
  }

  /// What the vectors of an example are trained to be.
  static float target_of(const Example& example) {
    std::uint64_t sum = 0;
    for (const auto& bag : example) {
      for (const std::uint64_t id : bag) sum += id;
    }
    return 0.01F * static_cast<float>(sum % 17);
  }

  /// Random examples with ids below `num_ids`, half of them hot, divided evenly.
  static std::function<Shares(std::int64_t)> random_shares(std::int64_t num_ranks,
                                                           std::uint64_t num_ids,
                                                           std::size_t examples = 16) {
    return [=](std::int64_t step) {
      std::mt19937_64 random(static_cast<std::uint64_t>(step));
      std::vector<Example> all;
      for (std::size_t e = 0; e < examples; ++e) {
        Example example(specs().features.size());
        for (auto& bag : example) {
          bag.resize(random() % 4);
          for (auto& id : bag) id = random() % (random() % 2 == 0 ? 5 : num_ids);
        }
        all.push_back(std::move(example));
      }
      Shares shares(static_cast<std::size_t>(num_ranks));
      for (std::size_t e = 0; e < all.size(); ++e) {
        shares[e * shares.size() / all.size()].push_back(std::move(all[e]));
      }
      return shares;
    };
  }

  embedding::GatedRowStore& store_of(std::int64_t rank) {
    return *stores_[static_cast<std::size_t>(rank)];
  }
  std::vector<std::int64_t> staleness() const { return staleness_; }
  embedding::CacheCounts counts() const { return counts_; }  // of the chief
  std::int64_t looked_ahead() const { return looked_ahead_; }

 private:
  /// Any number of groups share it in proportion to their needs.
  std::int64_t memory_bytes() const {
    std::int64_t bytes = 0;
    for (const std::int64_t table : {0, 1}) {
      bytes += backend::CacheSize{std::max<std::int64_t>(1, options_.cache_rows / 32), 0}.bytes(
          specs().tables[static_cast<std::size_t>(table)].layout());
    }
    if (options_.max_look_ahead > 0) {
      bytes += 2 * std::max<std::int64_t>(32, options_.cache_rows) * embedding::kWindowBytesPerSlot;
    }
    return 2 * bytes;  // the smaller one gets enough for one set too
  }

  void train(Cluster& cluster,
             const std::function<Shares(std::int64_t)>& shares_of,
             const After& after) {
    cluster.share([] { return ""; });
    ThreadPool pool(options_.threads);
    const auto device = backend::make_host_device(&pool);
    const backend::Stream stream(*device);
    std::unique_ptr<collective::DeviceCommunicator> device_ranks;
    if (options_.on_devices) {
      device_ranks = std::make_unique<collective::HostRanks>(
          cluster.make_communicator("devices"),
          collective::DeviceCommunicator::Options{.timeout_ms = options_.timeout_ms});
    }
    const table::StalenessBound bound(options_.staleness);
    const std::int64_t max_in_flight = options_.staleness + options_.in_flight_beyond;
    CachedTables tables(specs(), std::make_unique<BorrowedTables>(local_, options_.before_snapshot),
                        store_of(cluster.rank()),
                        {.memory_bytes = memory_bytes(),
                         .policy = options_.max_look_ahead > 0 ? backend::EvictionPolicy::kLookahead
                                                               : backend::EvictionPolicy::kLfu,
                         .max_in_flight = max_in_flight,
                         .update_delay = bound,
                         .max_look_ahead = options_.max_look_ahead,
                         .looks_ahead_at_once = options_.num_ranks > 1,
                         .num_fetches = 2,
                         .stream = device_ranks ? &stream : nullptr},
                        *device, pool, cluster, device_ranks.get());
    const auto group = cluster.make_communicator("test");
    StageTimers timers(kNumStages);
    StepQueue queue(1, bound);
    std::vector<std::unique_ptr<Work>> works;
    const auto driver = tables.make_driver(
        queue, {.staleness = bound, .deterministic = options_.deterministic, .planned_capacity = 2},
        timers);
    for (std::int64_t i = 0; i < max_in_flight; ++i) {
      works.push_back(std::make_unique<Work>());
      works.back()->rows = tables.access().make_rows();
      queue.add_free(works.back().get());
    }
    std::thread planner([&] { plan(cluster, shares_of, queue, *driver); });
    try {
      Rank rank{cluster.rank(), cluster, tables, *driver, *group};
      while (Work* const work = queue.take_looked_up(nullptr)) {
        const std::int64_t step = work->step;
        group->barrier(cluster.deadline());  // as where ranks sum their dense gradients
        give_gradient(shares_of(step)[static_cast<std::size_t>(rank.number)], *work, queue,
                      tables.access());
        if (after) {
          driver->wait_applied(step);
          after(rank, step);
        }
      }
      driver->wait_applied(options_.num_steps);
      tables.flush();
      group->barrier(cluster.deadline());
      const std::lock_guard lock(mutex_);
      if (cluster.is_chief()) {
        counts_ = *tables.cache();
        staleness_ = queue.staleness_histogram();
      }
    } catch (...) {
      driver->stop();
      planner.join();
      throw;
    }
    planner.join();
  }

  void plan(Cluster& cluster,
            const std::function<Shares(std::int64_t)>& shares_of,
            StepQueue& queue,
            StepDriver& driver) {
    const auto batch_of_step = [&](std::int64_t step) {
      return batch_of(shares_of(step)[static_cast<std::size_t>(cluster.rank())]);
    };
    try {
      std::int64_t shown = 0, ahead = 0;
      for (std::int64_t step = 1; step <= options_.num_steps; ++step) {
        Work* const work = queue.take_free();
        if (work == nullptr) return;
        for (; shown < std::min(step + ahead, options_.num_steps); ++shown) {
          driver.look_at(batch_of_step(shown + 1), shown + 1);
        }
        if (ahead <= 1 && options_.max_look_ahead > 0) ahead = agree_on(driver, step, cluster);
        work->step = step;
        work->batch = batch_of_step(step);
        driver.make_plan(*work);
        if (!driver.submit(work)) return;
      }
      driver.close();
    } catch (...) {
      queue.fail(std::current_exception());
    }
  }

  /// The fewest batches that a rank wants to see ahead.
  std::int64_t agree_on(StepDriver& driver, std::int64_t step, Cluster& cluster) {
    const std::int64_t wanted = driver.look_ahead();
    const auto group = cluster.make_communicator(concat("test-ahead-", step));
    std::vector<std::int64_t> all(static_cast<std::size_t>(cluster.size()));
    group->all_gather(std::as_bytes(std::span(&wanted, 1)), std::as_writable_bytes(std::span(all)),
                      cluster.deadline());
    const std::lock_guard lock(mutex_);
    return looked_ahead_ = *std::ranges::min_element(all);
  }

  void give_gradient(const std::vector<Example>& examples,
                     Work& work,
                     StepQueue& queue,
                     embedding::RowAccess& access) const {
    work.begin_outputs(access.on_device());
    std::vector<float> gradient = work.inputs.pooled_values();
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      gradient[i] -= target_of(examples[i * examples.size() / gradient.size()]);
    }
    const float flag = options_.not_finite.contains(work.step) ? 1.0F : 0.0F;
    *work.flag() = flag;
    if (work.device == nullptr) {
      work.grad_pooled.values() = gradient;
    } else {  // memory of the host, in other columns
      const embedding::FeatureLayout& on_host = access.layout();
      const embedding::FeatureLayout& there = work.device->layout;
      std::fill_n(work.grad_on_device.data(), work.batch.num_examples * there.output_width, 0.0F);
      embedding::copy_columns(on_host, gradient.data(), on_host.output_width, there,
                              work.grad_on_device.data(), there.output_width,
                              work.batch.num_examples, work.device->pool);
    }
    queue.submit_gradient(&work);
    queue.finish(&work);
  }

  const Options options_;
  ThreadPool pool_{1};
  LocalTables local_;
  table::RowStore& store_;
  std::vector<std::unique_ptr<embedding::GatedRowStore>> stores_;  // [num_ranks]
  RankThreads threads_;
  std::mutex mutex_;
  embedding::CacheCounts counts_;
  std::int64_t looked_ahead_ = 0;
  std::vector<std::int64_t> staleness_;
};

}  // namespace satrap::pipeline
