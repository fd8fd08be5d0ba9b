// Pulls of ranks that keep copies of rows: what is sent, and what need not be.

#include <atomic>
#include <random>
#include <thread>

#include "src/ps/pack_answer.h"
#include "tests/ps/copying_rank.h"
#include "tests/ps/shard_request_fixture.h"

namespace satrap::ps {
namespace {

using enum RowAnswer;
using testing::ElementsAre;

class ShardCopies : public ShardRequests {
 protected:
  void begin(const table::StalenessBound& staleness,
             bool deterministic,
             std::int64_t num_ranks = 1) {
    ShardJob job = job_of(num_ranks, staleness, deterministic);
    job.session = ++session_;
    job.keeps_copies = true;
    clients_[0]->begin(job);
    keys_ = own_keys(30);
    keys_.resize(3);
  }

  Bytes pull_of(const std::vector<Key>& keys, const std::vector<CopyAge>& ages) const {
    return prefix(0, session_) + bytes_of(keys) + bytes_of(ages);
  }

  /// What a pull is answered with. Checks that the weights are the rows as they are, of which the
  /// answer has as many as are kSent.
  std::vector<RowAnswer> pull(std::int64_t step,
                              const std::vector<Key>& keys,
                              const std::vector<CopyAge>& ages,
                              std::int32_t rank = 0) {
    const Answer answer = ask(ShardOp::kPull, step, pull_of(keys, ages), rank);
    EXPECT_EQ(answer.error, "");
    if (!answer.error.empty()) return {};
    std::vector<RowAnswer> answers(keys.size());
    unpack_answers(std::span(answer.bytes).subspan(sizeof(ReplyPrefix)), answers);
    std::vector<Key> sent;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (answers[i] == kSent) sent.push_back(keys[i]);
    }
    const std::size_t head =
        sizeof(ReplyPrefix) + static_cast<std::size_t>(answers_bytes(std::ssize(keys)));
    const Answer now = ask(ShardOp::kLookup, 0, prefix(0, session_) + bytes_of(sent));
    EXPECT_EQ(Bytes(answer.bytes.begin() + static_cast<std::ptrdiff_t>(head), answer.bytes.end()),
              Bytes(now.bytes.begin() + sizeof(ReplyPrefix), now.bytes.end()));
    return answers;
  }

  /// The update of a step that has pulled `keys`.
  void push(std::int64_t step, const std::vector<Key>& keys, std::int32_t rank = 0) {
    const auto values = static_cast<std::size_t>(num_values(keys));
    EXPECT_EQ(error_of(ShardOp::kPush, step,
                       prefix(0, session_) + bytes_of(std::vector<float>(values, 1.0F)), rank),
              "");
    EXPECT_EQ(error_of(ShardOp::kWaitApplied, step, prefix(0, session_)), "");
  }
  /// A step whose rows nobody has a copy of.
  void step(std::int64_t step, const std::vector<Key>& keys, std::int32_t rank) {
    pull(step, keys, std::vector<CopyAge>(keys.size(), kNoCopy), rank);
    push(step, keys, rank);
  }

  std::uint64_t session_ = 30;
  std::vector<Key> keys_;  // some of this shard
};

TEST_F(ShardCopies, OnlyRowsThatHaveChangedAreSentInDeterministicMode) {
  begin(0, true);
  EXPECT_THAT(pull(1, keys_, {kNoCopy, kNoCopy, kNoCopy}), ElementsAre(kSent, kSent, kSent));
  push(1, keys_);
  // Copies of E_0, which step 1 has changed.
  EXPECT_THAT(pull(2, {keys_[0], keys_[1]}, {copy_age(2, 0), copy_age(2, 0)}),
              ElementsAre(kSent, kSent));
  push(2, {keys_[0], keys_[1]});
  EXPECT_THAT(pull(3, keys_, {copy_age(3, 1), copy_age(3, 2), copy_age(3, 1)}),
              ElementsAre(kSent, kUnchanged, kUnchanged));
  push(3, keys_);
}

TEST_F(ShardCopies, ACopyOfExactlyTheOldestVersionIsKept) {
  for (const std::int64_t bound : {0, 1, 3}) {
    begin(bound, false, 2);
    for (std::int64_t t = 1; t <= 9; ++t) {  // of the other rank
      ASSERT_EQ(error_of(ShardOp::kPull, t, prefix(0, session_)), "");
      ASSERT_EQ(error_of(ShardOp::kPush, t, prefix(kSkip, session_)), "");
      step(t, keys_, 1);
    }
    const std::int64_t oldest = 10 - 1 - bound;
    EXPECT_THAT(pull(10, keys_, {copy_age(10, oldest), copy_age(10, oldest - 1), copy_age(10, 9)}),
                ElementsAre(bound == 0 ? kUnchanged : kKept, kSent, kUnchanged));
  }
}

TEST_F(ShardCopies, WhatIsNotThereIsSentWhateverWasSentBefore) {
  begin(4, false);
  EXPECT_THAT(pull(1, keys_, {kNoCopy, kNoCopy, kNoCopy}), ElementsAre(kSent, kSent, kSent));
  EXPECT_THAT(pull(2, keys_, {kNoCopy, kUnknownAge, kNoCopy}),
              ElementsAre(kSent, kUnchanged, kSent));
}

TEST_F(ShardCopies, ACopyOfUnknownAgeThatWasNeverSentIsSent) {
  begin(4, false);
  EXPECT_THAT(pull(1, keys_, {kUnknownAge, kUnknownAge, kNoCopy}),
              ElementsAre(kSent, kSent, kSent));
}

TEST_F(ShardCopies, ARowOfSeveralPullsInFlightIsSentOnce) {
  begin(4, false);
  EXPECT_THAT(pull(1, {keys_[0]}, {kNoCopy}), ElementsAre(kSent));
  push(1, {keys_[0]});
  for (std::int64_t t = 2; t <= 5; ++t) {  // E_0 is allowed up to step 5
    EXPECT_THAT(pull(t, {keys_[0]}, {kUnknownAge}), ElementsAre(kKept)) << "step " << t;
  }
  EXPECT_THAT(pull(6, {keys_[0]}, {kUnknownAge}), ElementsAre(kSent));  // E_1
  ASSERT_EQ(error_of(ShardOp::kPush, 2, prefix(kSkip, session_)), "");
  EXPECT_THAT(pull(7, {keys_[0]}, {copy_age(7, 0)}), ElementsAre(kUnchanged))
      << "the answer to an earlier pull is newer than the rank can say yet";
}

TEST_F(ShardCopies, InDeterministicModeToo) {
  begin(2, true);
  EXPECT_THAT(pull(1, keys_, {kNoCopy, kNoCopy, kNoCopy}), ElementsAre(kSent, kSent, kSent));
  EXPECT_THAT(pull(2, keys_, {kUnknownAge, kUnknownAge, kNoCopy}),
              ElementsAre(kUnchanged, kUnchanged, kSent));
  EXPECT_THAT(pull(3, keys_, {kUnknownAge, copy_age(3, 0), kUnknownAge}),
              ElementsAre(kUnchanged, kUnchanged, kUnchanged));
  push(1, keys_);
  EXPECT_THAT(pull(4, keys_, {kUnknownAge, copy_age(4, 0), kNoCopy}),  // of E_1
              ElementsAre(kSent, kSent, kSent));
}

TEST_F(ShardCopies, ARepeatedPullGetsTheSameBytes) {
  for (const bool deterministic : {true, false}) {
    begin(1, deterministic);
    pull(1, keys_, {kNoCopy, kNoCopy, kNoCopy});
    const Bytes request = pull_of(keys_, {kNoCopy, kUnknownAge, copy_age(2, 0)});
    const Answer first = ask(ShardOp::kPull, 2, request);
    ASSERT_EQ(first.error, "");
    push(1, keys_);
    const Answer again = ask(*connect(), ShardOp::kPull, 2, request);
    EXPECT_EQ(again.error, "");
    EXPECT_EQ(again.bytes, first.bytes);
    ASSERT_EQ(error_of(ShardOp::kPush, 2, prefix(kSkip, session_)), "");
    EXPECT_THAT(error_of(ShardOp::kPull, 2, request), has("whose gradients have arrived"));
  }
}

TEST_F(ShardCopies, PullsWithoutTheAgeOfEachCopyAreRefused) {
  begin(0, false);
  const Bytes good = pull_of(keys_, {kNoCopy, kNoCopy, kNoCopy});
  for (const std::ptrdiff_t cut : {1, 2, 6}) {
    EXPECT_THAT(error_of(ShardOp::kPull, 1, Bytes(good.begin(), good.end() - cut)),
                has("not a whole number of keys and ages of their copies"));
  }
  EXPECT_THAT(error_of(ShardOp::kPull, 1, good + Bytes(4)), has("keys and ages"));
  EXPECT_EQ(error_of(ShardOp::kPull, 1, good), "");
}

TEST_F(ShardCopies, JobsThatCannotKeepCopiesAreRefused) {
  const auto error_of_begin = [&](const std::function<void(ShardJob&)>& change) {
    ShardJob job{.session = 901, .keeps_copies = true};
    change(job);
    return error_of(ShardOp::kBegin, 0,
                    bytes_of_text(to_json(BeginMessage{job, describe_tables(tables_, kSeed, 2)})));
  };
  EXPECT_THAT(error_of_begin([](ShardJob& job) { job.async = true; }),
              has("copies of rows in async mode"));
  EXPECT_THAT(error_of_begin([](ShardJob& job) { job.is_cached = true; }), has("behind a cache"));
  clients_.clear();
  raw_.reset();
  servers_.clear();
  tables_[0].limits.ttl_steps = 10;
  servers_ = serve(2, {.num_workers = 2});
  raw_ = connect();
  EXPECT_THAT(error_of_begin([](ShardJob&) {}), has("of tables with limits"));
}

TEST(CopyAge, SaysHowManyStepsAgoAndNothingBeyond16Bits) {
  EXPECT_EQ(copy_age(10, 9), 0);
  EXPECT_EQ(copy_age(10, 2), 7);
  EXPECT_EQ(copy_age(0xFFFE, 0), 0xFFFD);
  EXPECT_EQ(copy_age(0xFFFF, 0), kUnknownAge);
  EXPECT_EQ(copy_age(1 << 30, 0), kUnknownAge);
}

// ------------------------------------------------------------- all of it, against the definition

struct CopyCase {
  std::int64_t num_shards, num_workers, num_ranks;
  std::int64_t staleness;
  double forgets;
  FloatType encoding = FloatType::kFp32;
};

class ShardCopiesOfRanks : public ShardTest {
 protected:
  static Cluster cluster_of(const CopyCase& of, bool deterministic) {
    Cluster cluster{.num_shards = of.num_shards,
                    .num_workers = of.num_workers,
                    .job = job_of(of.num_ranks, of.staleness, deterministic),
                    .num_steps = 60,
                    .encoding = of.encoding};
    cluster.job.keeps_copies = true;
    return cluster;
  }

  std::atomic<std::uint64_t> num_requests_ = 0;
};

/// Runs all ranks, a thread each; `gradient(rank)` gives the gradient function of one.
void run_all(std::vector<std::unique_ptr<CopyingRank>>& ranks,
             const std::function<CopyingRank::Gradient(std::int64_t)>& gradient) {
  std::vector<std::thread> threads;
  std::vector<std::string> errors(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    threads.emplace_back([&, r] {
      try {
        ranks[r]->train(gradient(static_cast<std::int64_t>(r)));
      } catch (const std::exception& error) {
        errors[r] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

TEST_F(ShardCopiesOfRanks, ReadExactlyTheBoundInDeterministicMode) {
  for (const CopyCase& of :
       {CopyCase{1, 1, 1, 0, 0.0}, CopyCase{1, 2, 1, 1, 0.1}, CopyCase{3, 2, 2, 4, 0.02},
        CopyCase{2, 3, 2, 0, 0.3}, CopyCase{2, 2, 1, 4, 0.0, FloatType::kBf16}}) {
    const Cluster cluster = cluster_of(of, true);
    const Oracle oracle(tables_);
    const std::vector<Oracle::Rows> versions = expected_rows(oracle, cluster);
    const auto servers = serve(of.num_shards, {.num_workers = of.num_workers});
    const auto clients = clients_of(cluster);
    std::vector<std::unique_ptr<CopyingRank>> ranks;
    for (std::int64_t r = 0; r < of.num_ranks; ++r) {
      ranks.push_back(std::make_unique<CopyingRank>(*clients[static_cast<std::size_t>(r)], oracle,
                                                    r, cluster, of.forgets));
    }
    run_all(ranks, [&](std::int64_t rank) {
      return [&, rank](std::int64_t step, Key key, const CopyingRank::Copy& copy, std::int64_t dim,
                       float* gradient) {
        const std::int64_t read =
            std::max<std::int64_t>(0, cluster.job.staleness.oldest_version(step));
        EXPECT_EQ(copy.weights,
                  Oracle::sent(of.encoding,
                               oracle.weights(versions[static_cast<std::size_t>(read)], key)))
            << "step " << step;
        EXPECT_EQ(copy.version, read);
        gradient_of(rank, step, key, copy.weights.data(), dim, gradient);
      };
    });
    clients[0]->wait_applied(cluster.num_steps);
    if (of.encoding == FloatType::kFp32) {
      expect_rows(*clients[0], oracle, versions.back(), cluster.num_ids);
    }
    // A step updates what it reads, so that a copy is as good as new only until that update.
    EXPECT_EQ(ranks[0]->num_unchanged() > 0, of.staleness > 0);
    EXPECT_EQ(ranks[0]->num_kept(), 0);
  }
}

/// Gradients do not depend on what was read, so that every version is known, whatever was.
TEST_F(ShardCopiesOfRanks, ReadWhatTheBoundAllowsAndWhatTheyBelieveOtherwise) {
  for (const CopyCase& of : {CopyCase{1, 1, 1, 0, 0.1}, CopyCase{2, 2, 2, 1, 0.05},
                             CopyCase{2, 3, 2, 4, 0.02}, CopyCase{1, 2, 3, 4, 0.0}}) {
    const Cluster cluster = cluster_of(of, false);
    const Oracle oracle(tables_);
    const std::vector<float> nothing(64, 0.0F);
    std::vector<Oracle::Rows> versions(1);
    for (std::int64_t step = 1; step <= cluster.num_steps; ++step) {
      Oracle::Sums sums;
      for (std::int64_t rank = 0; rank < of.num_ranks; ++rank) {
        for (const Key key : keys_of_step(rank, step, cluster.num_ids)) {
          std::vector<float> gradient(static_cast<std::size_t>(oracle.spec_of(key).dim));
          gradient_of(rank, step, key, nothing.data(), std::ssize(gradient), gradient.data());
          oracle.add(sums, key, gradient);
        }
      }
      versions.push_back(versions.back());
      oracle.apply(versions.back(), sums, step);
    }
    const auto delay = [this] {
      const RandomStream random{hash64(5, num_requests_.fetch_add(1))};
      std::this_thread::sleep_for(std::chrono::microseconds(random.below(0, 400)));
    };
    const auto servers =
        serve(of.num_shards, {.num_workers = of.num_workers, .before_request = delay});
    const auto clients = clients_of(cluster);
    std::vector<std::unique_ptr<CopyingRank>> ranks;
    for (std::int64_t r = 0; r < of.num_ranks; ++r) {
      ranks.push_back(std::make_unique<CopyingRank>(*clients[static_cast<std::size_t>(r)], oracle,
                                                    r, cluster, of.forgets, 2));
    }
    run_all(ranks, [&](std::int64_t rank) {
      return [&, rank](std::int64_t step, Key key, const CopyingRank::Copy& copy, std::int64_t dim,
                       float* gradient) {
        EXPECT_GE(copy.version, cluster.job.staleness.oldest_version(step)) << "step " << step;
        bool is_known = false;  // a worker may have read a newer one than the oldest worker
        for (std::int64_t v = copy.version; v < step && !is_known; ++v) {
          is_known = copy.weights == oracle.weights(versions[static_cast<std::size_t>(v)], key);
        }
        EXPECT_TRUE(is_known) << "step " << step << ", as of E_" << copy.version;
        gradient_of(rank, step, key, nothing.data(), dim, gradient);
      };
    });
    clients[0]->wait_applied(cluster.num_steps);
    expect_rows(*clients[0], oracle, versions.back(), cluster.num_ids);
    if (of.staleness == 1) continue;  // a step may keep what the one before has read in time
    EXPECT_EQ(ranks[0]->num_kept() > 0, of.staleness > 1)
        << of.num_ranks << " ranks, bound " << of.staleness << ": " << ranks[0]->num_sent()
        << " rows sent, " << ranks[0]->num_unchanged() << " unchanged";
  }
}

}  // namespace
}  // namespace satrap::ps
