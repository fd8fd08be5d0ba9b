#include "satrap/cli/stop_signals.h"

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
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

TEST(StopSignals, TheLauncherIsTheParentThatTheEnvironmentNames) {
  setenv("SATRAP_RUN_GRACE", "7", 1);
  setenv("SATRAP_RUN_PID", std::to_string(getppid()).c_str(), 1);
  EXPECT_EQ(Launcher::from_environment().pid, getppid());
  EXPECT_EQ(Launcher::from_environment().grace, std::chrono::seconds(7));
  for (const std::string& pid : {std::to_string(getpid()), std::string("x"), std::string()}) {
    setenv("SATRAP_RUN_PID", pid.c_str(), 1);
    EXPECT_EQ(Launcher::from_environment().pid, 0) << pid;
  }
  unsetenv("SATRAP_RUN_PID");
  EXPECT_EQ(Launcher::from_environment().pid, 0);
  unsetenv("SATRAP_RUN_GRACE");
}

/// In these tests this process is its own launcher, and `somebody_else` is a child of it.
Launcher self(std::chrono::milliseconds grace = std::chrono::hours(1)) {
  return {.pid = getpid(), .grace = grace};
}

void somebody_else_sends(int number) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) _exit(kill(parent, number));
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
}

void wait_until_taken(int number) {
  sigset_t pending;
  do {
    sigpending(&pending);
  } while (sigismember(&pending, number) == 1);
}

TEST(StopSignals, TheLaunchersSignalIsNeverASecondOne) {
  for (const bool launcher_first : {false, true}) {
    const StopSignals signals(StopSignals::Role::kWorker, self());
    if (launcher_first) kill(getpid(), SIGTERM);
    wait_until_taken(SIGTERM);
    somebody_else_sends(SIGINT);
    wait_until_taken(SIGINT);
    wait_for(signals.stop());
    for (int i = 0; i < 2; ++i) {
      kill(getpid(), SIGTERM);
      wait_until_taken(SIGTERM);
    }
    EXPECT_EQ(signals.signal_number(), launcher_first ? SIGTERM : SIGINT);
  }
}

TEST(StopSignals, AServerServesUntilItsLauncherSaysOtherwise) {
  const StopSignals signals(StopSignals::Role::kServer, self());
  testing::internal::CaptureStderr();
  somebody_else_sends(SIGTERM);
  while (!signals.is_announced()) std::this_thread::yield();
  EXPECT_FALSE(signals.stop());
  kill(getpid(), SIGINT);
  wait_for(signals.stop());
  EXPECT_EQ(signals.signal_number(), SIGINT);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("SIGTERM, but not of satrap-run: serves on until the ranks have "
                                 "written their checkpoint, at most 3610 s"));
}

TEST(StopSignals, AServerDoesNotWaitForEverForItsLauncher) {
  // Grace and kServerGrace together are 1 ms.
  const StopSignals signals(StopSignals::Role::kServer,
                            self(std::chrono::milliseconds(1) - StopSignals::kServerGrace));
  somebody_else_sends(SIGTERM);
  wait_for(signals.stop());
  EXPECT_EQ(signals.signal_number(), SIGTERM);
}

TEST(StopSignals, AServerWithoutALauncherEndsAtOnce) {
  const StopSignals signals(StopSignals::Role::kServer, {});
  somebody_else_sends(SIGTERM);
  wait_for(signals.stop());
  EXPECT_EQ(signals.signal_number(), SIGTERM);
}

TEST(StopSignalsDeathTest, TheSecondSignalOfSomebodyElseKillsAServer) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        const StopSignals signals(StopSignals::Role::kServer, self());
        somebody_else_sends(SIGTERM);
        while (!signals.is_announced()) std::this_thread::yield();
        somebody_else_sends(SIGINT);
        while (true) pause();
      },
      testing::KilledBySignal(SIGINT), "");
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
