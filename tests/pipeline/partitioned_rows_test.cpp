// The caches of several ranks as one, before tables of this process.

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/table/sharding.h"
#include "tests/pipeline/partitioned_training.h"
#include "tests/support/sanitized.h"

namespace satrap::pipeline {
namespace {

using embedding::StoreCall;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Options = PartitionedTraining::Options;
using Shares = PartitionedTraining::Shares;
using SharesOf = std::function<Shares(std::int64_t)>;

/// The rows after a job.
std::string rows_after(const Options& options, const SharesOf& shares_of) {
  PartitionedTraining training(options);
  EXPECT_THAT(training.run(shares_of), Each(IsEmpty()));
  return training.rows();
}

/// The shares of all ranks as those of one.
SharesOf of_one_rank(const SharesOf& shares_of) {
  return [shares_of](std::int64_t step) {
    Shares one(1);
    for (const auto& share : shares_of(step)) {
      one[0].insert(one[0].end(), share.begin(), share.end());
    }
    return one;
  };
}

/// What partitioned ranks must come to: gradients of a key added within each rank, one after the
/// other, then over the ranks in their order; then the optimizer of the key's table, in place.
class Reference {
 public:
  void step(const Shares& shares, std::int64_t step) {
    using KeyOfTable = std::pair<std::size_t, std::uint64_t>;
    std::vector<std::map<KeyOfTable, std::vector<float>>> of_rank(shares.size());
    for (std::size_t r = 0; r < shares.size(); ++r) {
      const std::vector<float> pooled = PartitionedTraining::pooled(tables_.access(), shares[r]);
      // By ascending position: feature by feature.
      std::size_t column = 0;
      for (std::size_t f = 0; f < specs_.features.size(); ++f) {
        const auto table = static_cast<std::size_t>(specs_.features[f].table);
        const auto dim = static_cast<std::size_t>(specs_.tables[table].dim);
        for (std::size_t e = 0; e < shares[r].size(); ++e) {
          const float* const of_example = pooled.data() + e * kWidth + column;
          for (const std::uint64_t id : shares[r][e][f]) {
            std::vector<float>& sum = of_rank[r][{table, id}];
            sum.resize(dim);
            for (std::size_t d = 0; d < dim; ++d) {
              sum[d] += of_example[d] - PartitionedTraining::target_of(shares[r][e]);
            }
          }
        }
        column += dim;
      }
    }
    // A bag of one id, with its gradient, for every rank and key.
    std::vector<Example> examples;
    std::vector<float> gradients;
    for (const auto& keys : of_rank) {
      for (const auto& [key, gradient] : keys) {
        Example& example = examples.emplace_back(specs_.features.size());
        example[key.first] = {key.second};  // feature i reads table i
        std::vector<float> row(kWidth);
        std::ranges::copy(gradient, row.begin() + kColumns[key.first]);
        gradients.insert(gradients.end(), row.begin(), row.end());
      }
    }
    const auto rows = tables_.access().make_rows();
    rows->make_plan(planner_, PartitionedTraining::batch_of(examples), step);
    rows->request(step);
    rows->wait();
    HostMatrix matrix;
    matrix.resize(std::ssize(examples), kWidth);
    matrix.values() = gradients;
    rows->update(matrix.view(), step);
    rows->wait_taken();
    last_step_ = step;
  }
  std::string rows() { return PartitionedTraining::content(*tables_.take_snapshot(last_step_)); }

 private:
  static constexpr std::size_t kWidth = 18;
  static constexpr std::ptrdiff_t kColumns[] = {0, 4, 10};
  const job::EmbeddingSpecs specs_ = PartitionedTraining::specs();
  ThreadPool pool_{1};
  LocalTables tables_{specs_, pool_};
  embedding::Planner planner_{tables_.access().layout(), pool_};
  std::int64_t last_step_ = 0;
};

TEST(PartitionedRows, EqualASlowReferenceThatAddsInTheOrderOfTheRanks) {
  for (const std::int64_t ranks : {2, 3}) {
    const auto shares_of = PartitionedTraining::random_shares(ranks, 200);
    Reference reference;
    for (std::int64_t step = 1; step <= 20; ++step) reference.step(shares_of(step), step);
    EXPECT_EQ(rows_after({.num_ranks = ranks, .cache_rows = 64}, shares_of), reference.rows())
        << ranks << " ranks";
  }
}

TEST(PartitionedRows, HaveTheSameBitsInEveryRunForAnySizeOfTheCachesAndNumberOfThreads) {
  constexpr std::int64_t kIds = 300;
  for (const std::int64_t ranks : {1, 2, 4}) {
    const auto shares_of = PartitionedTraining::random_shares(ranks, kIds, 128);
    // Larger than all rows; smaller than a batch needs, so that all rows leave in every step.
    const std::string expected = rows_after({.num_ranks = ranks, .cache_rows = 2048}, shares_of);
    EXPECT_EQ(rows_after({.num_ranks = ranks, .threads = 3, .cache_rows = 2048}, shares_of),
              expected);
    PartitionedTraining small({.num_ranks = ranks, .cache_rows = 32});
    EXPECT_THAT(small.run(shares_of), Each(IsEmpty()));
    EXPECT_EQ(small.rows(), expected);
    // They go to the store and come back.
    EXPECT_GT(small.counts().rows_written, 2 * 3 * kIds / ranks);
  }
}

TEST(PartitionedRows, HaveTheSameBitsInHybridModes) {
  for (const std::int64_t staleness : {1, 4}) {
    const auto shares_of = PartitionedTraining::random_shares(2, 300);
    const Options options{.num_ranks = 2, .cache_rows = 64, .staleness = staleness};
    const std::string expected = rows_after(options, shares_of);
    Options other = options;
    other.deterministic = false;  // their order is fixed all the same
    other.cache_rows = 512;
    other.in_flight_beyond = 5;
    EXPECT_EQ(rows_after(other, shares_of), expected);
  }
}

TEST(PartitionedRows, HaveTheSameBitsWhereDevicesExchangeThem) {
  const Example common = {{1}, {2, 3}, {4}, {5}};
  const SharesOf uneven = [common](std::int64_t step) {  // one rank has none, or all have the same
    Shares shares(3, std::vector<Example>(static_cast<std::size_t>(step % 3), common));
    shares[static_cast<std::size_t>(step % 3)].clear();
    return shares;
  };
  for (const std::int64_t ranks : {2, 3, 4}) {
    for (const std::int64_t staleness : {0, 1, 4}) {
      if (kSanitized && ranks + staleness % 3 != 3) continue;  // a third of them
      SCOPED_TRACE(::testing::Message() << ranks << " ranks, staleness " << staleness);
      const auto shares_of = PartitionedTraining::random_shares(ranks, 300, 40);
      Options options{
          .num_ranks = ranks, .cache_rows = 64, .staleness = staleness, .not_finite = {4, 9}};
      const std::string expected = rows_after(options, shares_of);
      options.on_devices = true;
      EXPECT_EQ(rows_after(options, shares_of), expected);
      options.cache_rows = 2048;
      options.threads = 3;
      EXPECT_EQ(rows_after(options, shares_of), expected);
      if (ranks != 3) continue;
      options.on_devices = false;
      const std::string of_uneven = rows_after(options, uneven);
      options.on_devices = true;
      EXPECT_EQ(rows_after(options, uneven), of_uneven);
    }
  }
}

/// Every id comes back after as many others as there are: too many for the caches, so that rows
/// that are kept by what they have been worth are all evicted before.
SharesOf cycle_of_ids(std::int64_t num_ranks, std::uint64_t num_ids) {
  return [=](std::int64_t step) {
    Shares shares(static_cast<std::size_t>(num_ranks));
    for (std::uint64_t i = 0; i < 40; ++i) {
      const std::uint64_t id = (static_cast<std::uint64_t>(step) * 40 + i) % num_ids;
      shares[i % shares.size()].push_back({{id}, {id}, {}, {(id + 7) % num_ids}});
    }
    return shares;
  };
}

TEST(PartitionedRows, ThatComeBackSoonStayWhereTheRanksLookAhead) {
  for (const std::int64_t ranks : {1, 2, 3}) {
    for (const std::int64_t staleness : {0, 4}) {
      const auto shares_of = cycle_of_ids(ranks, 600);
      const Options by_frequency{
          .num_ranks = ranks, .num_steps = 90, .cache_rows = 384 / ranks, .staleness = staleness};
      Options ahead = by_frequency;
      ahead.max_look_ahead = 40;
      PartitionedTraining one(by_frequency), other(ahead);
      EXPECT_THAT(one.run(shares_of), Each(IsEmpty()));
      EXPECT_THAT(other.run(shares_of), Each(IsEmpty()));
      EXPECT_GT(other.looked_ahead(), 1);
      EXPECT_EQ(other.rows(), one.rows()) << ranks << " ranks";
      EXPECT_LT(static_cast<double>(other.counts().misses),
                0.9 * static_cast<double>(one.counts().misses))
          << ranks << " ranks";
    }
  }
}

TEST(PartitionedRows, OfSeveralRanksAreThoseOfOneUpToTheOrderOfSums) {
  constexpr std::uint64_t kIds = 60;
  for (const std::int64_t ranks : {2, 4}) {
    const auto shares_of = PartitionedTraining::random_shares(ranks, kIds);
    PartitionedTraining several({.num_ranks = ranks, .num_steps = 200});
    PartitionedTraining one({.num_ranks = 1, .num_steps = 200});
    EXPECT_THAT(several.run(shares_of), Each(IsEmpty()));
    EXPECT_THAT(one.run(of_one_rank(shares_of)), Each(IsEmpty()));
    EXPECT_THAT(several.weights(kIds),
                testing::Pointwise(testing::FloatNear(1e-5F), one.weights(kIds)));
    EXPECT_NE(several.rows(), one.rows());  // else the test would show nothing
  }
}

TEST(PartitionedRows, MayBeNeededByNoneByOneOrByAllRanks) {
  const SharesOf shares_of = [](std::int64_t step) {
    Shares shares(3);
    const Example common = {{1}, {2, 3}, {4}, {5}};
    switch (step % 4) {
      case 0:  // all need the same keys
        shares = {{common}, {common, common}, {common}};
        break;
      case 1:  // a rank with no example, as at the end of its data
        shares = {{common}, {}, {common}};
        break;
      case 2:  // one alone has any, and with no ids
        shares[2] = {{{}, {}, {}, {}}};
        break;
      default:  // each its own
        shares = {{{{10}, {}, {}, {}}}, {{{11}, {}, {}, {12}}}, {{{13}, {14}, {}, {}}}};
    }
    return shares;
  };
  Reference reference;
  for (std::int64_t step = 1; step <= 20; ++step) reference.step(shares_of(step), step);
  EXPECT_EQ(rows_after({.num_ranks = 3}, shares_of), reference.rows());
}

TEST(PartitionedRows, MayAllLeaveTheCacheInEveryStep) {
  constexpr std::uint64_t kHalf = 400;  // of the ids: more than the caches hold
  const SharesOf shares_of = [](std::int64_t step) {
    Shares shares(2);
    const std::uint64_t first = step % 2 == 0 ? 0 : kHalf;
    for (std::uint64_t i = 0; i < kHalf; ++i) {
      shares[i % 2].push_back({{first + i}, {first + i}, {}, {first + (i * 7) % kHalf}});
    }
    return shares;
  };
  Reference reference;
  for (std::int64_t step = 1; step <= 10; ++step) reference.step(shares_of(step), step);
  PartitionedTraining training({.num_ranks = 2, .num_steps = 10, .cache_rows = 32});
  EXPECT_THAT(training.run(shares_of), Each(IsEmpty()));
  EXPECT_EQ(training.rows(), reference.rows());
  EXPECT_LT(training.counts().hits, training.counts().misses / 10);
}

TEST(PartitionedRows, StayAsTheyAreInAStepThatIsNotFinite) {
  const auto shares_of = PartitionedTraining::random_shares(2, 100);
  Reference reference;
  for (std::int64_t step = 1; step <= 20; ++step) {
    if (step % 3 != 0) reference.step(shares_of(step), step);
  }
  EXPECT_EQ(rows_after({.num_ranks = 2, .not_finite = {3, 6, 9, 12, 15, 18}}, shares_of),
            reference.rows());
}

// ---------------------------------------------------------------------- snapshots, evaluations

TEST(PartitionedRows, OfASnapshotAreThoseOfItsStepOnAllRanks) {
  constexpr std::int64_t kSteps[] = {6, 13};
  const auto shares_of = PartitionedTraining::random_shares(3, 200);
  PartitionedTraining training({.num_ranks = 3, .cache_rows = 64});
  // One rank is late: no put of a later step may come into the snapshot before its rows have.
  training.store_of(1).close(StoreCall::kPut);
  std::map<std::int64_t, std::unique_ptr<RowsSnapshot>> snapshots;
  std::map<std::int64_t, std::string> contents;
  const auto after = [&](PartitionedTraining::Rank& rank, std::int64_t step) {
    if (step == kSteps[0] || step == kSteps[1]) {
      if (rank.number == 0) {
        snapshots[step] = rank.tables.take_snapshot(step);
      } else {
        rank.tables.join_snapshot();
      }
    }
    if (step == kSteps[0] + 4 && rank.number == 1) training.store_of(1).open_all();
    if ((step == kSteps[1] - 1 || step == 20) && rank.number == 0) {
      const std::int64_t written = step == 20 ? kSteps[1] : kSteps[0];
      contents[written] = PartitionedTraining::content(*snapshots[written]);
    }
    if (step == 20) rank.tables.wait_joined();
  };
  EXPECT_THAT(training.run(shares_of, after), Each(IsEmpty()));
  Reference reference;
  for (std::int64_t step = 1; step <= kSteps[1]; ++step) {
    reference.step(shares_of(step), step);
    if (!contents.contains(step)) continue;
    EXPECT_EQ(contents[step], reference.rows()) << "step " << step;
  }
  EXPECT_EQ(contents.size(), 2U);
}

TEST(PartitionedRows, OfLaterStepsWaitUntilTheSnapshotHasBegun) {
  const auto shares_of = PartitionedTraining::random_shares(2, 300);
  std::promise<void> has_trained_on;
  PartitionedTraining training({.num_ranks = 2, .cache_rows = 32, .before_snapshot = [&] {
                                  constexpr std::chrono::seconds kDeadline(30);
                                  EXPECT_EQ(has_trained_on.get_future().wait_for(kDeadline),
                                            std::future_status::ready);
                                }});
  std::string content;
  std::unique_ptr<RowsSnapshot> snapshot;
  const auto after = [&](PartitionedTraining::Rank& rank, std::int64_t step) {
    if (step == 5 && rank.number == 0) snapshot = rank.tables.take_snapshot(step);
    if (step == 5 && rank.number == 1) rank.tables.join_snapshot();
    // By now the other rank has evicted rows of later steps.
    if (step == 15 && rank.number == 1) has_trained_on.set_value();
    if (step < 20) return;
    if (rank.number == 0) content = PartitionedTraining::content(*snapshot);
    rank.tables.wait_joined();
  };
  EXPECT_THAT(training.run(shares_of, after), Each(IsEmpty()));
  EXPECT_EQ(content, rows_after({.num_ranks = 2, .num_steps = 5}, shares_of));
}

TEST(PartitionedRows, AreReadForEvaluationAsAllRanksHaveTrainedThem) {
  constexpr std::uint64_t kIds = 50;
  const auto shares_of = PartitionedTraining::random_shares(2, kIds);
  PartitionedTraining training({.num_ranks = 2, .num_steps = 8});
  std::map<std::int64_t, std::vector<std::vector<float>>> read;
  std::mutex mutex;
  const auto after = [&](PartitionedTraining::Rank& rank, std::int64_t step) {
    if (step % 4 != 0) return;
    rank.tables.flush();
    rank.group.barrier(rank.cluster.deadline());
    {
      const std::lock_guard lock(mutex);
      read[step].push_back(
          PartitionedTraining::pooled(rank.tables.access(), PartitionedTraining::one_by_one(kIds)));
    }
    rank.group.barrier(rank.cluster.deadline());
  };
  EXPECT_THAT(training.run(shares_of, after), Each(IsEmpty()));
  PartitionedTraining half({.num_ranks = 2, .num_steps = 4});
  EXPECT_THAT(half.run(shares_of), Each(IsEmpty()));
  EXPECT_THAT(read[4], Each(half.weights(kIds)));
  EXPECT_THAT(read[8], Each(training.weights(kIds)));
  EXPECT_NE(read[4], read[8]);
}

// -------------------------------------------------------------------------------------- failures

/// All ranks end, each with an error, long before the deadline of a hanging one.
void expect_all_fail(PartitionedTraining& training, const SharesOf& shares_of) {
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<std::string> errors = training.run(shares_of);
  EXPECT_THAT(errors, Each(Not(IsEmpty())));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST(PartitionedRows, OfAStoreThatFailsToGiveEndTheJobOnAllRanks) {
  for (const std::int64_t staleness : {0, 4}) {
    PartitionedTraining training({.num_ranks = 3, .staleness = staleness});
    training.store_of(1).fail(StoreCall::kFetch, 5);
    expect_all_fail(training, PartitionedTraining::random_shares(3, 500));
  }
}

TEST(PartitionedRows, OfAStoreThatFailsToTakeEndTheJobOnAllRanks) {
  PartitionedTraining training({.num_ranks = 3, .num_steps = 200, .cache_rows = 32});
  training.store_of(2).fail(StoreCall::kPut, 3);
  expect_all_fail(training, PartitionedTraining::random_shares(3, 500));
}

TEST(PartitionedRows, ThatDoNotFitOnOneRankEndTheJobOnAllRanks) {
  const SharesOf shares_of = [](std::int64_t step) {
    Shares shares(3, {{{1}, {1}, {1}, {}}});
    if (step < 5) return shares;
    Example example(4);  // with many keys of the second rank, unlike the first batch
    for (std::uint64_t id = 0; id < 3000; ++id) {
      if (table::shard_of(make_key(TableId{0}, id), 3) == 1) example[0].push_back(id);
    }
    shares[2].push_back(example);
    return shares;
  };
  PartitionedTraining training({.num_ranks = 3, .cache_rows = 32});
  const std::vector<std::string> errors = training.run(shares_of);
  EXPECT_THAT(errors, Each(Not(IsEmpty())));
  EXPECT_THAT(errors[1], HasSubstr("do not fit in the cache"));
}

TEST(PartitionedRows, OfAStoreThatIsLateAreWaitedFor) {
  const auto shares_of = PartitionedTraining::random_shares(2, 300);
  PartitionedTraining training({.num_ranks = 2, .staleness = 2});
  training.store_of(1).close(StoreCall::kFetch);
  std::thread slow([&] {
    training.store_of(1).wait_for_waiting(StoreCall::kFetch, 2);
    training.store_of(1).open(StoreCall::kFetch);
  });
  EXPECT_THAT(training.run(shares_of), Each(IsEmpty()));
  slow.join();
  EXPECT_EQ(training.rows(), rows_after({.num_ranks = 2, .staleness = 2}, shares_of));
}

TEST(PartitionedRows, OfAStoreThatDoesNotAnswerAreWaitedForUntilTheDeadline) {
  PartitionedTraining training({.num_ranks = 2, .timeout_ms = 1000});
  training.store_of(1).close(StoreCall::kFetch);
  // Rank 0 gives up. Rank 1 waits for its store, which has a deadline of its own.
  const auto on_end = [&](std::int64_t rank) {
    if (rank == 0) training.store_of(1).open_all();
  };
  const auto errors = training.run(PartitionedTraining::random_shares(2, 300), {}, on_end);
  EXPECT_THAT(errors, Each(Not(IsEmpty())));
}

TEST(PartitionedRows, OfARankThatDiesInASnapshotEndTheJobOfTheOthers) {
  PartitionedTraining training({.num_ranks = 3});
  const auto after = [&](PartitionedTraining::Rank& rank, std::int64_t step) {
    if (step != 5) return;
    if (rank.number == 2) throw std::runtime_error("dies");
    if (rank.number == 0) {
      const auto snapshot = rank.tables.take_snapshot(step);
      const TemporaryDirectory directory;
      EXPECT_THROW(snapshot->write(directory.path()), std::exception);
    } else {
      rank.tables.join_snapshot();
    }
    rank.tables.wait_joined();
  };
  EXPECT_THAT(training.run(PartitionedTraining::random_shares(3, 100), after),
              Each(Not(IsEmpty())));
}

}  // namespace
}  // namespace satrap::pipeline
