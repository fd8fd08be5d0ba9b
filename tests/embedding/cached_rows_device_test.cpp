// Rows in the cache of a device: on the executor its streams run in any order that their events
// allow, and what two of them, or one and the host, do without an order is an error.

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/embedding/cached_rows_fixture.h"
#include "tests/embedding/planner_beside.h"
#include "tests/support/device/device.h"

namespace satrap::embedding {
namespace {

using satrap::testing::device;
using satrap::testing::for_each_schedule;

/// With caches that hold next to nothing, so that overflow rows come and go, and larger ones.
TEST(CachedRowsOfADevice, TrainAsInTheirTables) {
  SATRAP_NEEDS_DEVICE();
  const auto least = bytes_of_least(backend::EvictionPolicy::kLookahead);
  for (const auto& [memory, is_registered] :
       {std::pair{least, false}, {bytes_of_share(0.05), true}, {bytes_of_share(0.2), false}}) {
    for_each_schedule([memory, is_registered] {
      CachedTraining training(three_tables(), four_features(),
                              {.memory_bytes = memory,
                               .policy = backend::EvictionPolicy::kLookahead,
                               .staleness = 2,
                               .prefetch = 2,
                               .max_look_ahead = 8,
                               .num_fetches = 3,
                               .is_registered = is_registered,
                               .device = &device()});
      training.train(
          24, [&] { return next_batch(training); },
          [&] {
            if (training.random() % 4 == 0) training.save();
          });
      training.expect_rows();
      EXPECT_GT(training.cached->counts().rows_written, 0);
    });
  }
}

/// As at the end of a run that is stopped in the middle of its prefetch: rows are on their way to
/// the device, and from there.
TEST(CachedRowsOfADevice, IsDestroyedWithBatchesInFlight) {
  SATRAP_NEEDS_DEVICE();
  for (const bool is_registered : {false, true}) {
    for_each_schedule([is_registered] {
      CachedTraining training(three_tables(), four_features(),
                              {.memory_bytes = bytes_of_share(0.05),
                               .staleness = 2,
                               .prefetch = 3,
                               .is_registered = is_registered,
                               .device = &device()});
      training.train(6, [&] { return next_batch(training); }, [] {});
      for (int n = 0; n < 3; ++n) training.request(next_batch(training));
    });
  }
}

/// A batch is resolved again once others are done, with lists that the first time has used. Nobody
/// waits for the rows that made room: the write-back is busy with older ones.
TEST(CachedRowsOfADevice, BatchesThatDoNotFitTogetherWaitForEachOther) {
  SATRAP_NEEDS_DEVICE();
  for_each_schedule([] {
    const RowLayout layout = table_spec(0, 4).layout();
    CachedTraining training({table_spec(0, 4)}, {feature(0)},
                            {.memory_bytes = backend::CacheSize{1, 0}.bytes(layout),
                             .staleness = 1,
                             .prefetch = 3,
                             .device = &device()});
    training.gate.close(StoreCall::kPut);
    // The first decides the size. A large one must wait for several small ones.
    std::vector<data::Batch> batches;
    for (std::uint64_t n = 0; n < 20; ++n) {
      std::vector<std::vector<std::uint64_t>> bags;
      for (std::uint64_t id = 0; id < (n % 4 == 3 ? 400U : 60U); ++id)
        bags.push_back({1000 * n + id});
      batches.push_back(batch_of({bags}));
    }
    PlannerBeside planner(training, std::move(batches));
    EXPECT_EQ(planner.train(), "");
    training.gate.open_all();
    training.cached->flush();
    EXPECT_EQ(differences(training.home.updated_rows(), training.in_place.updated_rows()), "");
  });
}

}  // namespace
}  // namespace satrap::embedding
