#include "src/cli/last_words.h"

#include <csignal>
#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <gtest/gtest.h>

#include "satrap/core/thread_name.h"

namespace satrap::cli {
namespace {

/// In a process of its own: what it says when `exception` leaves a thread.
template <class Exception>
[[noreturn]] void end_by(const Exception& exception) {
  std::set_terminate(end_unreported);
  std::thread([&] {
    set_thread_name("data-parse");
    throw exception;
  }).join();
  std::abort();
}

using ::testing::ExitedWithCode;
using ::testing::KilledBySignal;

TEST(LastWordsDeathTest, AThreadWithoutMemoryEndsTheProcessWithAnError) {
  EXPECT_EXIT(end_by(std::bad_alloc()), ExitedWithCode(1),
              "^error: out of memory in thread 'data-parse'\n$");
}

TEST(LastWordsDeathTest, SoDoesAThreadWithoutThreads) {
  EXPECT_EXIT(
      end_by(std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again))),
      ExitedWithCode(1), "^error: Resource temporarily unavailable in thread 'data-parse'\n$");
}

TEST(LastWordsDeathTest, AnythingElseIsABugThatAborts) {
  EXPECT_EXIT(end_by(std::runtime_error("no such thing")), KilledBySignal(SIGABRT),
              "^error: no such thing\n$");
  EXPECT_EXIT(
      {
        std::set_terminate(end_unreported);
        std::thread forgotten([] {});
      },
      KilledBySignal(SIGABRT), "");
}

TEST(LastWordsDeathTest, AnAllocationThatFailsEndsTheProcess) {
  EXPECT_EXIT(end_without_memory(), ExitedWithCode(1), "^error: out of memory in thread '");
}

}  // namespace
}  // namespace satrap::cli
