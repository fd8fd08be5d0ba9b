#include "src/data/rows/row_block_bytes.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "tests/data/random_block.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

std::vector<std::byte> bytes_of(const RowBlock& block) {
  std::vector<std::byte> bytes;
  append_block(block, bytes);
  return bytes;
}

/// A block without rows for those of `like`.
RowBlock with_columns_of(const RowBlock& like) {
  RowBlock block;
  block.clear(std::ssize(like.numeric), std::ssize(like.bags), like.num_labels);
  block.kept.resize(like.kept.size());
  return block;
}

std::vector<NamedLabelConfig> labels_of(const RowBlock& block) {
  return std::vector<NamedLabelConfig>(static_cast<std::size_t>(block.num_labels));
}

std::string error_of_reading(const std::vector<std::byte>& bytes, const RowBlock& like) {
  RowBlock block = with_columns_of(like);
  return error_of([&] { read_block(bytes, labels_of(like), block); }, ErrorCode::kCorrupt);
}

TEST(RowBlockBytes, AreReadAsTheRowsThatWereWritten) {
  RowBlock read;  // its memory is used again
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const RowBlock block = random_block(seed);
    if (seed == 0) read = with_columns_of(block);
    read_block(bytes_of(block), labels_of(block), read);
    expect_equal(read, block);
  }
}

TEST(RowBlockBytes, OfNoRowsAndOfOneRow) {
  for (const std::int64_t rows : {0, 1}) {
    const RowBlock block = random_block(7, rows);
    RowBlock read = with_columns_of(block);
    read_block(bytes_of(block), labels_of(block), read);
    expect_equal(read, block);
  }
}

TEST(RowBlockBytes, RowsWithoutNumbersOfTheirOwnStayWithoutThem) {
  RowBlock block = random_block(1);
  block.row_numbers.clear();
  RowBlock read = with_columns_of(block);
  read_block(bytes_of(block), labels_of(block), read);
  expect_equal(read, block);
}

TEST(RowBlockBytes, AreAppended) {
  const RowBlock block = random_block(2);
  std::vector<std::byte> bytes(3, std::byte{17});
  append_block(block, bytes);
  EXPECT_EQ(bytes.front(), std::byte{17});
  bytes.erase(bytes.begin(), bytes.begin() + 3);
  EXPECT_EQ(bytes, bytes_of(block));
}

TEST(RowBlockBytes, SmallIdsOfOneEachTakeFewBytes) {
  RowBlock block;
  block.clear(0, 1);
  constexpr std::int64_t kRows = 1000;
  for (std::int64_t r = 0; r < kRows; ++r) {
    block.labels.push_back(0);
    block.row_numbers.push_back(50 + r);
    block.bags[0].offsets.push_back(r + 1);
    block.bags[0].ids.push_back(1'000'000 + static_cast<std::uint64_t>(r % 200));
  }
  block.num_rows = kRows;
  EXPECT_LT(std::ssize(bytes_of(block)), 5 * kRows + 100);  // a label, and one byte of an id
}

TEST(RowBlockBytes, ThatAreCutAnywhereAreAnError) {
  const RowBlock block = random_block(3, 5);
  const std::vector<std::byte> bytes = bytes_of(block);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    error_of_reading({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}, block);
  }
}

TEST(RowBlockBytes, ThatGoOnAfterTheRowsAreAnError) {
  const RowBlock block = random_block(3, 5);
  std::vector<std::byte> bytes = bytes_of(block);
  bytes.push_back({});
  EXPECT_TRUE(contains(error_of_reading(bytes, block), "1 bytes too many"));
}

TEST(RowBlockBytes, WithALabelThatIsNeither0Nor1AreAnError) {
  RowBlock block = random_block(3, 5);
  for (const float label : {2.0F, 0.5F, std::numeric_limits<float>::infinity()}) {
    block.labels[7] = label;
    EXPECT_TRUE(contains(error_of_reading(bytes_of(block), block), "a label is"));
  }
}

TEST(RowBlockBytes, LabelsAreWhatTheirConfigurationAllows) {
  RowBlock block = random_block(3, 5);
  std::vector<NamedLabelConfig> labels = labels_of(block);
  labels[1].source.type = LabelType::kNumber;
  block.labels[7] = -2.5F;
  RowBlock read = with_columns_of(block);
  read_block(bytes_of(block), labels, read);
  expect_equal(read, block);
  const auto error = [&](float label) {
    block.labels[7] = label;
    return error_of([&] { read_block(bytes_of(block), labels, read); }, ErrorCode::kCorrupt);
  };
  EXPECT_TRUE(contains(error(std::numeric_limits<float>::infinity()), "a label is inf"));
  labels[1].source = {.classes = 3};
  EXPECT_TRUE(contains(error(3.0F), "a label is 3"));
  EXPECT_TRUE(contains(error(-1.0F), "a label is -1"));
  EXPECT_TRUE(contains(error(0.5F), "a label is 0.5"));
  block.labels[7] = 2.0F;
  read_block(bytes_of(block), labels, read);
  EXPECT_EQ(read.labels[7], 2.0F);
}

TEST(RowBlockBytes, OfSeveralLabelsOneMayBeMissing) {
  RowBlock block = random_block(3, 5);
  ASSERT_GT(block.num_labels, 1);
  block.labels[7] = std::numeric_limits<float>::quiet_NaN();
  RowBlock read = block;
  read_block(bytes_of(block), labels_of(block), read);
  EXPECT_TRUE(std::isnan(read.labels[7]));
  block.num_labels = 1;
  block.labels.resize(static_cast<std::size_t>(block.num_rows));
  block.labels[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(contains(error_of_reading(bytes_of(block), block), "a label is"));
}

TEST(RowBlockBytes, OfAnotherVersionAreAnError) {
  const RowBlock block = random_block(3, 5);
  std::vector<std::byte> bytes = bytes_of(block);
  bytes.front() ^= std::byte{1};
  EXPECT_TRUE(contains(error_of_reading(bytes, block), "version"));
}

TEST(RowBlockBytes, OfOtherColumnsAreAnError) {
  const RowBlock block = random_block(3, 5);
  RowBlock other = block;
  other.numeric.pop_back();
  EXPECT_TRUE(contains(error_of_reading(bytes_of(block), other), "columns of numbers"));
  other = block;
  other.bags.emplace_back();
  EXPECT_TRUE(contains(error_of_reading(bytes_of(block), other), "columns of ids"));
  other = block;
  other.num_labels = 1;
  EXPECT_TRUE(contains(error_of_reading(bytes_of(block), other), "columns of labels"));
  other = block;
  other.kept.clear();
  EXPECT_TRUE(contains(error_of_reading(bytes_of(block), other), "columns of texts"));
}

/// Neither a crash nor much memory, whatever the bytes say.
TEST(RowBlockBytes, WithChangesAnywhereAreAnErrorOrRows) {
  const RandomStream random{11};
  const RowBlock block = random_block(3, 20);
  const std::vector<std::byte> bytes = bytes_of(block);
  for (std::uint64_t n = 0; n < 2000; ++n) {
    std::vector<std::byte> changed = bytes;
    for (std::uint64_t k = 0; k < 3; ++k) {
      const std::uint64_t bits = random.bits(3 * n + k);
      changed[(bits >> 8) % changed.size()] = static_cast<std::byte>(bits & 255);
    }
    RowBlock read = with_columns_of(block);
    try {
      read_block(changed, labels_of(block), read);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
      continue;
    }
    for (const RowBlock::Bags& bags : read.bags) {
      EXPECT_EQ(bags.offsets.size(), static_cast<std::size_t>(read.num_rows) + 1);
      EXPECT_EQ(bags.offsets.back(), std::ssize(bags.ids));
    }
    EXPECT_LE(read.num_rows, std::ssize(bytes));
  }
}

}  // namespace
}  // namespace satrap::data
