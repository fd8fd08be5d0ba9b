#include "src/trainer/npy_writer.h"

#include <gtest/gtest.h>

#include "satrap/core/file.h"
#include "tests/support/temporary_directory.h"

namespace satrap::trainer {
namespace {

std::string written(const std::vector<std::int64_t>& shape, const std::vector<float>& values) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/x.npy";
  NpyWriter array(path, "<f4", shape);
  array.write(std::as_bytes(std::span(values)));
  array.file().finish();
  return read_file(path);
}

TEST(NpyWriter, TheHeaderSaysTypeAndShapeAndEndsOnABoundaryOf64) {
  const std::string file = written({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(file.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const auto header_size = static_cast<std::size_t>(static_cast<unsigned char>(file[8])) +
                           256 * static_cast<std::size_t>(static_cast<unsigned char>(file[9]));
  EXPECT_EQ((10 + header_size) % 64, 0U);
  const std::string header = file.substr(10, header_size);
  EXPECT_TRUE(header.starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, )} "));
  EXPECT_EQ(header.back(), '\n');
  EXPECT_EQ(file.size(), 10 + header_size + 6 * sizeof(float));
}

TEST(NpyWriter, AnEmptyArrayIsItsHeader) { EXPECT_EQ(written({0}, {}).size() % 64, 0U); }

}  // namespace
}  // namespace satrap::trainer
