#include "satrap/cli/stop_signals.h"

#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

namespace satrap::cli {
namespace {

/// Another thread sets the flag; ctest ends a test that never sees it.
void wait_for(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::yield();
}

TEST(StopSignals, NothingIsStoppedAtFirst) {
  const StopSignals signals;
  EXPECT_FALSE(signals.stop());
  EXPECT_EQ(signals.signal_number(), 0);
}

TEST(StopSignals, TheFirstSignalSetsTheFlag) {
  for (const int number : {SIGINT, SIGTERM}) {
    const StopSignals signals;
    kill(getpid(), number);
    wait_for(signals.stop());
    EXPECT_EQ(signals.signal_number(), number);
  }
}

TEST(StopSignals, OtherThreadsAreNotInterrupted) {
  const StopSignals signals;
  std::thread other([&] {
    kill(getpid(), SIGTERM);
    wait_for(signals.stop());
  });
  other.join();
  EXPECT_EQ(signals.signal_number(), SIGTERM);
}

TEST(StopSignals, AnIgnoredSignalStaysIgnored) {
  std::signal(SIGINT, SIG_IGN);
  {
    const StopSignals signals;
    kill(getpid(), SIGINT);
    kill(getpid(), SIGTERM);
    wait_for(signals.stop());
    EXPECT_EQ(signals.signal_number(), SIGTERM);
  }
  std::signal(SIGINT, SIG_DFL);
}

TEST(StopSignals, TheMaskIsRestored) {
  {
    const StopSignals signals;
  }
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(sigismember(&mask, SIGTERM), 0);
}

TEST(StopSignalsDeathTest, TheSecondSignalKills) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        const StopSignals signals;
        kill(getpid(), SIGTERM);
        wait_for(signals.stop());
        kill(getpid(), SIGINT);
        while (true) pause();
      },
      testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace satrap::cli
