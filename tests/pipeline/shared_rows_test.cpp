// A rank's copies of rows on shards: the same bits in deterministic mode, never older than the
// bound otherwise, and fewer bytes.

#include "satrap/pipeline/shared_rows.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "satrap/net/file_store.h"
#include "satrap/ps/shard_server.h"
#include "tests/embedding/embedding_oracle.h"
#include "tests/embedding/random_bags.h"
#include "tests/support/temporary_directory.h"

namespace satrap::pipeline {
namespace {

using embedding::kTablesSeed;
using testing::HasSubstr;

std::vector<table::TableSpec> shared_specs() {
  return {embedding::table_spec(0, 16), embedding::table_spec(1, 8, RowOptimizerType::kAdam),
          embedding::table_spec(2, 3, RowOptimizerType::kFtrl)};
}

std::vector<job::FeatureSpec> shared_features() {
  using embedding::feature;
  return {feature(0, Pooling::kSum), feature(1, Pooling::kMean), feature(0, Pooling::kSequence, 4),
          feature(2, Pooling::kSqrtN)};
}

/// The batch that a rank has at a step: a pure function.
data::Batch batch_of_step(std::int64_t rank, std::int64_t step) {
  std::mt19937_64 random(
      hash64(17, static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(step)));
  return embedding::random_batch(random, std::ssize(shared_features()), 5 + 7 * (step % 4), 5, 200,
                                 true);
}

/// Shards with a job, and the ranks' accesses to their rows.
class SharedJob {
 public:
  struct Options {
    std::int64_t num_shards = 1;
    ps::ShardJob job = {};
    std::int64_t cache_bytes = 0;  // 0: no copies
    backend::EvictionPolicy policy = backend::EvictionPolicy::kLfu;
    std::int64_t max_pulls = 8;  // of each rank in flight
    FloatType encoding = FloatType::kFp32;
    std::function<void()> delay = {};
    bool enforce_bound = true;
  };

  explicit SharedJob(const Options& options)
      : options_(options), store_(std::make_shared<net::FileStore>(folder_.path() + "/store")) {
    for (std::int64_t s = 0; s < options.num_shards; ++s) {
      servers_.push_back(std::make_unique<ps::ShardServer>(
          server_end_, *store_, shared_specs(), kTablesSeed,
          ps::ShardServerOptions{.shard = s,
                                 .num_shards = options.num_shards,
                                 .num_workers = 2,
                                 .before_request = options.delay,
                                 .enforce_bound = options.enforce_bound}));
    }
    ps::ShardJob job = options.job;
    job.session = 5;
    job.keeps_copies = options.cache_bytes > 0;
    for (std::int64_t rank = 0; rank < job.num_ranks; ++rank) {
      Rank& of_rank = *ranks_.emplace_back(std::make_unique<Rank>());
      of_rank.client = std::make_unique<ps::ShardClient>(
          client_end_, store_, shared_specs(), kTablesSeed,
          ps::ShardClient::Options{.rank = rank,
                                   .num_shards = options.num_shards,
                                   .encoding = options.encoding,
                                   .timeout_ms = 60'000});
      if (rank == 0) of_rank.client->begin(job);
      if (rank > 0) of_rank.client->join(job.session);
      if (options.cache_bytes == 0) {
        of_rank.access = std::make_unique<ShardRows>(shared_features(), shared_specs(),
                                                     *of_rank.client, of_rank.pool);
        continue;
      }
      auto shared = std::make_unique<SharedRows>(
          shared_features(), shared_specs(), *of_rank.client, *of_rank.device, of_rank.pool,
          embedding::SharedCache::Options{.memory_bytes = options.cache_bytes,
                                          .policy = options.policy,
                                          .batch_examples = 26,
                                          .max_in_flight = options.max_pulls + 1,
                                          .max_look_ahead = 50,
                                          .staleness = job.staleness});
      of_rank.shared = shared.get();
      of_rank.access = std::move(shared);
    }
  }

  /// What a rank's training has read.
  struct Record {
    std::vector<std::vector<float>> pooled;  // by step
    std::vector<std::int64_t> ages;
    embedding::CacheCounts counts;
    std::int64_t bytes_pulled = 0;
  };

  /// Trains one rank, with pulls ahead as far as it may.
  Record train(std::int64_t rank, std::int64_t num_steps) {
    const std::int64_t window = std::min(options_.max_pulls, options_.job.staleness.max() + 2);
    std::vector<std::unique_ptr<embedding::BatchRows>> rows;
    for (std::int64_t i = 0; i <= window; ++i) {
      rows.push_back(ranks_[static_cast<std::size_t>(rank)]->access->make_rows());
    }
    try {
      return train_with(rows, rank, num_steps);
    } catch (...) {
      for (const auto& each : ranks_) each->access->stop();  // before `rows` waits for its pulls
      throw;
    }
  }

  Record train_with(std::vector<std::unique_ptr<embedding::BatchRows>>& rows,
                    std::int64_t rank,
                    std::int64_t num_steps) {
    const std::int64_t window = std::ssize(rows) - 1;
    Rank& of = *ranks_[static_cast<std::size_t>(rank)];
    embedding::RowAccess& access = *of.access;
    embedding::Planner planner(access.layout(), access.pool());
    const auto rows_of = [&](std::int64_t step) -> embedding::BatchRows& {
      return *rows[static_cast<std::size_t>(step % (window + 1))];
    };
    Record record;
    std::int64_t pulled = 0, shown = 0, taken = 0;
    for (std::int64_t step = 1; step <= num_steps; ++step) {
      for (; pulled < std::min(num_steps, step + window - 1); ++pulled) {
        const std::int64_t next = pulled + 1;
        while (shown < std::min(num_steps, next + access.look_ahead())) {
          ++shown;
          access.look_at(batch_of_step(rank, shown), shown);
        }
        rows_of(next).make_plan(planner, batch_of_step(rank, next), next);
        rows_of(next).request(next, std::max<std::int64_t>(0, next - window));
        if (next == num_steps) of.client->end_pulls(next);
      }
      const data::Batch batch = batch_of_step(rank, step);
      record.ages.push_back(step - 1 - rows_of(step).wait().value_or(-1));
      record.pooled.push_back(pool(rows_of(step), batch));
      std::vector<float> gradient = record.pooled.back();
      const RandomStream random{
          hash64(static_cast<std::uint64_t>(rank + 3), static_cast<std::uint64_t>(step))};
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        gradient[i] = 0.3F * gradient[i] + random.uniform(i) - 0.5F;
      }
      const std::int64_t width = access.layout().output_width;
      rows_of(step).update(
          host_matrix(std::span(std::as_const(gradient)), batch.num_examples, width), step);
      const std::int64_t spare = options_.job.staleness.max() > 0 && step < num_steps ? 1 : 0;
      for (; taken < step - spare; ++taken) rows_of(taken + 1).wait_taken();
    }
    of.client->wait_applied(num_steps);
    if (of.shared != nullptr) record.counts = of.shared->counts();
    record.bytes_pulled = of.client->bytes_pulled();
    record.pooled.push_back(read(access, planner, rank));
    return record;
  }

  std::vector<Record> train_all(std::int64_t num_steps, std::vector<std::string>& errors) {
    std::vector<Record> records(ranks_.size());
    errors.assign(ranks_.size(), "");
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      threads.emplace_back([&, r] {
        try {
          records[r] = train(static_cast<std::int64_t>(r), num_steps);
        } catch (const Error& error) {
          errors[r] =
              concat(error.code() == ErrorCode::kInternal ? "" : "another code: ", error.what());
        } catch (const std::exception& error) {
          errors[r] = error.what();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return records;
  }

 private:
  struct Rank {
    ThreadPool pool{2};
    std::unique_ptr<backend::Device> device = backend::make_host_device(&pool);
    std::unique_ptr<ps::ShardClient> client;
    std::unique_ptr<embedding::RowAccess> access;
    SharedRows* shared = nullptr;
  };

  static std::vector<float> pool(const embedding::BatchRows& rows, const data::Batch& batch) {
    const embedding::FeatureLayout layout(shared_features(), shared_specs());
    std::vector<float> pooled(static_cast<std::size_t>(batch.num_examples * layout.output_width));
    std::vector<float> mask(static_cast<std::size_t>(batch.num_examples * layout.mask_width));
    rows.pool(batch, host_matrix(std::span(pooled), batch.num_examples, layout.output_width),
              host_matrix(std::span(mask), batch.num_examples, layout.mask_width));
    return pooled;
  }

  /// The rows as they are at the end.
  static std::vector<float> read(embedding::RowAccess& access,
                                 embedding::Planner& planner,
                                 std::int64_t rank) {
    const auto reader = access.make_rows();
    const data::Batch batch = batch_of_step(rank, 3);
    reader->read(planner, batch);
    return pool(*reader, batch);
  }

  static net::EndpointOptions endpoint_options() {
    net::EndpointOptions options;
    options.token = "secret";
    return options;
  }

  const Options options_;
  const TemporaryDirectory folder_;
  std::shared_ptr<net::FileStore> store_;
  net::Endpoint server_end_{endpoint_options()}, client_end_{endpoint_options()};
  std::vector<std::unique_ptr<ps::ShardServer>> servers_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

constexpr std::int64_t kOneSetEach = 3 * 32 * (64 + 32 + 64);  // smaller than a batch
constexpr std::int64_t kRoomForAll = 4 << 20;

ps::ShardJob job_with(std::int64_t num_ranks,
                      const table::StalenessBound& staleness,
                      bool deterministic) {
  ps::ShardJob job;
  job.num_ranks = num_ranks;
  job.staleness = staleness;
  job.deterministic = deterministic;
  return job;
}

TEST(SharedRows, HaveTheBitsOfRowsWithoutCopiesInDeterministicMode) {
  using enum backend::EvictionPolicy;
  constexpr std::int64_t kSteps = 40;
  for (const std::int64_t staleness : {0, 1, 4, 16}) {
    for (const FloatType encoding : {FloatType::kFp32, FloatType::kBf16}) {
      if (encoding != FloatType::kFp32 && staleness != 4) continue;
      std::vector<std::string> errors;
      SharedJob::Options options{.job = job_with(2, staleness, true), .encoding = encoding};
      const auto expected = SharedJob(options).train_all(kSteps, errors);
      for (const auto& [num_shards, cache_bytes, policy] :
           {std::tuple{1, kOneSetEach, kLookahead}, std::tuple{2, std::int64_t{60'000}, kLfu},
            std::tuple{3, kRoomForAll, kLru}, std::tuple{2, std::int64_t{120'000}, kLookahead}}) {
        SCOPED_TRACE(concat("staleness ", staleness, ", ", num_shards, " shards, ", cache_bytes));
        options.num_shards = num_shards;
        options.cache_bytes = cache_bytes;
        options.policy = policy;
        const auto found = SharedJob(options).train_all(kSteps, errors);
        for (std::size_t r = 0; r < found.size(); ++r) {
          ASSERT_EQ(errors[r], "");
          // Not EXPECT_EQ, which would look for the differences for minutes.
          EXPECT_TRUE(found[r].pooled == expected[r].pooled) << "rank " << r;
          EXPECT_EQ(found[r].ages, expected[r].ages);
          // What a step reads it changes: with a bound of 0 no copy can be read again.
          EXPECT_EQ(found[r].counts.hits > 0, staleness > 0);
          EXPECT_GT(found[r].counts.misses, 0);
          EXPECT_EQ(found[r].counts.rows_written, 0);
          EXPECT_GT(found[r].counts.bytes, 0);
        }
      }
    }
  }
}

std::int64_t steps_of_bound_test() {
  const char* const steps = std::getenv("SATRAP_BOUND_TEST_STEPS");
  return steps == nullptr ? 300 : std::atoll(steps);
}

constexpr std::int64_t kPullsInFlight = 3;
constexpr std::int64_t kOldestRead = kPullsInFlight - 1;

/// Two ranks, two shards that answer late at random.
SharedJob::Options late_job(std::int64_t staleness, std::atomic<std::uint64_t>& num_requests) {
  return {.num_shards = 2,
          .job = job_with(2, staleness, false),
          .cache_bytes = 60'000,
          .max_pulls = kPullsInFlight,
          .delay = [&num_requests] {
            const RandomStream random{hash64(29, num_requests.fetch_add(1))};
            std::this_thread::sleep_for(std::chrono::microseconds(random.below(0, 300)));
          }};
}

TEST(SharedRows, AreNeverOlderThanTheBound) {
  for (const std::int64_t staleness : {0, 1, 4, 16}) {
    std::atomic<std::uint64_t> num_requests = 0;
    std::vector<std::string> errors;
    const auto records =
        SharedJob(late_job(staleness, num_requests)).train_all(steps_of_bound_test(), errors);
    for (std::size_t r = 0; r < records.size(); ++r) {
      ASSERT_EQ(errors[r], "");
      EXPECT_LE(*std::ranges::max_element(records[r].ages), staleness);
      EXPECT_GE(*std::ranges::min_element(records[r].ages), 0);
      EXPECT_EQ(*std::ranges::max_element(records[r].ages) > 0, staleness > 0);
      // The shards read nothing older than this: it is copies that are.
      EXPECT_EQ(*std::ranges::max_element(records[r].ages) > kOldestRead, staleness > kOldestRead);
    }
  }
}

TEST(SharedRows, OlderThanTheBoundAreAnErrorWhereTheyAreRead) {
  std::atomic<std::uint64_t> num_requests = 0;
  SharedJob::Options options = late_job(1, num_requests);
  options.enforce_bound = false;  // of the shards
  std::vector<std::string> errors;
  SharedJob(options).train_all(300, errors);
  EXPECT_THAT(errors, testing::Contains(testing::AllOf(HasSubstr("would read the copy of id"),
                                                       HasSubstr("; the bound allows E_"))));
}

/// What is skewed is sent less often: of the ids here half are a few hot ones.
TEST(SharedRows, NeedFewerBytes) {
  const auto bytes = [](std::int64_t cache_bytes) {
    std::vector<std::string> errors;
    const auto records = SharedJob({.num_shards = 2,
                                    .job = job_with(1, 16, false),
                                    .cache_bytes = cache_bytes,
                                    .max_pulls = kPullsInFlight})
                             .train_all(60, errors);
    EXPECT_EQ(errors[0], "");
    EXPECT_EQ(records[0].counts.bytes_fetched, cache_bytes > 0 ? records[0].bytes_pulled : 0);
    return static_cast<double>(records[0].bytes_pulled);
  };
  EXPECT_LT(bytes(kRoomForAll), 0.75 * bytes(0));
}

}  // namespace
}  // namespace satrap::pipeline
