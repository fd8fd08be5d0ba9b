#include "satrap/core/thread_group.h"

#include <atomic>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include "satrap/core/error.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

/// Lets no thread start while it lives: none gets a stack as large as the address space.
class NoMoreThreads {
 public:
  NoMoreThreads() {
    pthread_getattr_default_np(&usual_);
    pthread_attr_t huge = usual_;
    pthread_attr_setstacksize(&huge, std::size_t{1} << 47);
    pthread_setattr_default_np(&huge);
  }
  ~NoMoreThreads() {
    pthread_setattr_default_np(&usual_);
    pthread_attr_destroy(&usual_);
  }
  NoMoreThreads(const NoMoreThreads&) = delete;
  NoMoreThreads& operator=(const NoMoreThreads&) = delete;

 private:
  pthread_attr_t usual_{};
};

std::string name_of_started_thread() {
  char name[16] = {};
  pthread_getname_np(pthread_self(), name, sizeof(name));
  return name;
}

TEST(StartThread, RunsUnderItsName) {
  std::string name;
  start_thread("data-parse", [&] { name = name_of_started_thread(); }).join();
  EXPECT_EQ(name, "data-parse");
}

TEST(StartThread, SaysWhatToLookAtIfThereIsNone) {
  const NoMoreThreads none;
  try {
    start_thread("data-parse", [] {}).join();
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.what(), HasSubstr("thread 'data-parse' cannot be started: "));
    EXPECT_THAT(error.what(), HasSubstr("ulimit -u"));
  }
}

/// Owns threads that end when it is told to.
class Owner {
 public:
  Owner(std::atomic<int>& num_ended, bool fails) {
    for (int i = 0; i < 3; ++i) {
      threads_.start("owned", [this, &num_ended] {
        ended_.wait(false);
        ++num_ended;
      });
    }
    if (!fails) return;
    const NoMoreThreads none;
    threads_.start("one too many", [] {});
  }

 private:
  std::atomic<bool> ended_{false};
  ThreadGroup threads_{[this] {
    ended_ = true;
    ended_.notify_all();
  }};
};

TEST(ThreadGroup, StopsAndJoins) {
  std::atomic<int> num_ended{0};
  {
    const Owner owner(num_ended, false);
  }
  EXPECT_EQ(num_ended, 3);
}

TEST(ThreadGroup, StopsAndJoinsForAnOwnerThatIsHalfBuilt) {
  std::atomic<int> num_ended{0};
  EXPECT_THROW(Owner(num_ended, true), Error);
  EXPECT_EQ(num_ended, 3);
}

}  // namespace
}  // namespace satrap
