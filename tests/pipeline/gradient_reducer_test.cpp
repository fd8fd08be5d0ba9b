#include "satrap/pipeline/gradient_reducer.h"

#include <chrono>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/dense/dense_network.h"
#include "satrap/net/endpoint.h"
#include "satrap/net/file_rendezvous.h"
#include "satrap/net/net_error.h"
#include "tests/support/temporary_directory.h"

namespace satrap::pipeline {
namespace {

constexpr std::int64_t kBucket = dense::DenseNetwork::kGradientBucket;
constexpr std::int64_t kTimeoutMs = 30'000;

class GradientReducerTest : public testing::Test {
 protected:
  // Runs body(rank, group) for two ranks, each in its own thread.
  void run(const std::function<void(int, collective::Communicator&)>& body) {
    const std::string name = std::to_string(num_groups_++);
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < 2; ++rank) {
      ranks.emplace_back([&, rank] {
        const net::Endpoint endpoint{net::EndpointOptions{}};
        const auto group = collective::make_gloo_communicator(endpoint, store_, name, rank, 2,
                                                              net::Deadline::after_ms(kTimeoutMs));
        body(rank, *group);
      });
    }
    for (std::thread& rank : ranks) rank.join();
  }

 private:
  const TemporaryDirectory directory_;
  net::FileRendezvous store_{directory_.path()};
  int num_groups_ = 0;
};

TEST_F(GradientReducerTest, SumsAllButTheFirstBucketWhateverWasToldOfBefore) {
  for (const std::int64_t size :
       {std::int64_t{0}, std::int64_t{5}, kBucket, kBucket + 1, 3 * kBucket, 3 * kBucket + 77}) {
    run([&](int rank, collective::Communicator& group) {
      GradientReducer reducer(group, kTimeoutMs);
      std::mt19937 random(static_cast<unsigned>(rank));
      for (int step = 1; step <= 6; ++step) {
        std::vector<float> gradient(static_cast<std::size_t>(size),
                                    static_cast<float>(step + rank));
        // Each rank at its own pace, some not at all.
        for (std::int64_t first = (size - 1) / kBucket * kBucket; first > 0; first -= kBucket) {
          if (random() % 3 == 0) break;
          reducer.ready_from(gradient, first);
        }
        reducer.wait(gradient);
        for (std::int64_t i = 0; i < size; ++i) {
          const int expected = i < kBucket ? step + rank : 2 * step + 1;
          ASSERT_EQ(gradient[static_cast<std::size_t>(i)], static_cast<float>(expected))
              << i << " of " << size << " in step " << step;
        }
      }
    });
  }
}

TEST_F(GradientReducerTest, WaitThrowsWhatHasHappenedToASumBesideTheStep) {
  run([&](int rank, collective::Communicator& group) {
    if (rank == 1) {
      group.close();
      return;
    }
    std::vector<float> gradient(3 * kBucket);
    GradientReducer reducer(group, kTimeoutMs);
    reducer.ready_from(gradient, kBucket);
    EXPECT_THROW(reducer.wait(gradient), net::NetError);
    EXPECT_THROW(reducer.wait(gradient), net::NetError) << "and goes on doing so";
  });
}

TEST_F(GradientReducerTest, EndsAtOnceWhileItSumsWithARankThatDoesNotCome) {
  run([&](int rank, collective::Communicator& group) {
    std::vector<float> gradient(3 * kBucket);
    const auto begin = std::chrono::steady_clock::now();
    if (rank == 0) {
      GradientReducer reducer(group, kTimeoutMs);
      reducer.ready_from(gradient, kBucket);
    } else {
      EXPECT_THROW(group.barrier(net::Deadline::after_ms(kTimeoutMs)), net::NetError);
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(kTimeoutMs / 2));
  });
}

}  // namespace
}  // namespace satrap::pipeline
