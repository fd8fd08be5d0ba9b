#include "src/data/files/random_file.h"

#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "tests/support/temporary_directory.h"

namespace satrap::data {
namespace {

TEST(RandomFile, ReadsAtAnyPlaceAndNotBeyondTheEnd) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/file";
  std::ofstream(path) << "0123456789";
  const auto file = open_random_file(path);
  EXPECT_EQ(file->name(), path);
  EXPECT_EQ(file->size(), 10);
  std::string some(4, '\0');
  file->read(6, some);
  EXPECT_EQ(some, "6789");
  file->read(0, some);
  EXPECT_EQ(some, "0123");
  EXPECT_THROW(file->read(7, some), Error);
  EXPECT_THROW(open_random_file(folder.path() + "/none"), Error);
}

}  // namespace
}  // namespace satrap::data
