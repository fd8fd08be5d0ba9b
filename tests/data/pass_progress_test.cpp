#include "satrap/data/pass_progress.h"

#include <gmock/gmock.h>

#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

TEST(PassProgressTest, EndsOnceThereIsAStop) {
  std::atomic<bool> stop = false;
  PassProgress progress("counting rows", 0, &stop);
  progress.note(5);
  stop = true;
  EXPECT_EQ(error_of([&] { progress.note(6); }, ErrorCode::kIo), "counting rows was stopped");
}

TEST(PassProgressTest, NeedsNone) { PassProgress("counting rows", 10, nullptr).note(10); }

}  // namespace
}  // namespace satrap::data
