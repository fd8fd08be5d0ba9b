#include "src/trainer/safetensors_writer.h"

#include <cstring>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "satrap/core/file.h"
#include "tests/support/temporary_directory.h"

namespace satrap::trainer {
namespace {

struct SafetensorsFile {
  nlohmann::json header;
  std::string values;
};

SafetensorsFile read_back(const std::vector<SafetensorsWriter::Tensor>& tensors,
                          const std::string& values) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/x.safetensors";
  SafetensorsWriter writer(path, tensors);
  writer.write(std::as_bytes(std::span(values)));
  writer.file().finish();
  const std::string file = read_file(path);
  std::uint64_t size = 0;
  std::memcpy(&size, file.data(), sizeof(size));
  EXPECT_EQ((sizeof(size) + size) % 64, 0U);
  EXPECT_EQ(file[8], '{');
  return {nlohmann::json::parse(file.substr(8, size)), file.substr(8 + size)};
}

TEST(SafetensorsWriter, TensorsFollowEachOtherWithoutGaps) {
  const SafetensorsFile file =
      read_back({{"keys", "U64", 8, {2}}, {"weights", "F32", 4, {2, 3}}}, std::string(40, 'v'));
  EXPECT_EQ(file.header["keys"],
            nlohmann::json({{"dtype", "U64"}, {"shape", {2}}, {"data_offsets", {0, 16}}}));
  EXPECT_EQ(file.header["weights"],
            nlohmann::json({{"dtype", "F32"}, {"shape", {2, 3}}, {"data_offsets", {16, 40}}}));
  EXPECT_EQ(file.values, std::string(40, 'v'));
}

TEST(SafetensorsWriter, AnEmptyTensorHasItsShape) {
  const SafetensorsFile file = read_back({{"weights", "F32", 4, {0, 3}}}, "");
  EXPECT_EQ(file.header["weights"],
            nlohmann::json({{"dtype", "F32"}, {"shape", {0, 3}}, {"data_offsets", {0, 0}}}));
  EXPECT_EQ(file.values, "");
}

TEST(SafetensorsWriter, NamesAreEscaped) {
  EXPECT_TRUE(read_back({{"a \"b\"", "F32", 4, {1}}}, "1234").header.contains("a \"b\""));
}

}  // namespace
}  // namespace satrap::trainer
