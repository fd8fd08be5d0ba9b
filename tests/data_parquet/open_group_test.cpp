#include "src/data/arrow/open_group.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/hash.h"
#include "src/data/columnar/parquet.h"
#include "src/data/files/random_file.h"
#include "tests/data/text_files.h"
#include "tests/data_parquet/parquet_table.h"

namespace satrap::data {
namespace {

constexpr std::int64_t kColumns = 30, kRows = 20'000, kFirstRows = 100;
constexpr std::int64_t kPiece = std::int64_t{1} << 20;

/// Counts what is read of a file.
class CountedFile : public RandomFile {
 public:
  explicit CountedFile(const std::string& path) : file_(open_random_file(path)) {}

  const std::string& name() const override { return file_->name(); }
  std::int64_t size() const override { return file_->size(); }
  std::int64_t piece_bytes() const override { return kPiece; }
  void read(std::int64_t begin, std::span<char> out) const override {
    if (is_broken) throw std::runtime_error("the disk is broken");
    {
      const std::lock_guard lock(mutex_);
      reads_.push_back(std::ssize(out));
    }
    file_->read(begin, out);
  }

  /// The bytes of each read since the last call.
  std::vector<std::int64_t> take_reads() {
    const std::lock_guard lock(mutex_);
    return std::exchange(reads_, {});
  }

  std::atomic<bool> is_broken{false};

 private:
  const std::shared_ptr<const RandomFile> file_;
  mutable std::mutex mutex_;
  mutable std::vector<std::int64_t> reads_;
};

class OpenGroupTest : public FilesTest {
 protected:
  /// A row group of about 5 MB, in pages of 8 KiB.
  OpenGroupTest() {
    std::vector<std::pair<std::string, std::shared_ptr<arrow::Array>>> columns;
    for (std::int64_t c = 0; c < kColumns; ++c) {
      Maybe<std::int64_t> values;
      for (std::int64_t r = 0; r < kRows; ++r) values.emplace_back(value_of(c, r));
      columns.emplace_back("c" + std::to_string(c), int64s(values));
    }
    const std::string path = ParquetTable(columns).write(path_of("x.parquet"), kRows, false,
                                                         parquet::Compression::SNAPPY, 1);
    file_ = std::make_shared<CountedFile>(path);
    parquet_ = parquet_library().open(file_);
    file_->take_reads();
    std::iota(columns_.begin(), columns_.end(), std::size_t{0});
  }

  static std::int64_t value_of(std::int64_t column, std::int64_t row) {
    return static_cast<std::int64_t>(
        hash64(static_cast<std::uint64_t>(column), static_cast<std::uint64_t>(row)));
  }

  std::unique_ptr<ParquetGroupReader> read_group(std::int64_t max_bytes) const {
    return parquet_->read_group(0, columns_, max_bytes);
  }

  /// Whether the next rows are the right ones.
  static void expect_rows(ParquetGroupReader& reader, std::int64_t begin, std::int64_t end) {
    std::vector<ParquetValues> values(kColumns);
    reader.read(end - begin, values);
    for (std::int64_t c = 0; c < kColumns; ++c) {
      std::vector<std::int64_t> expected;
      for (std::int64_t r = begin; r < end; ++r) expected.push_back(value_of(c, r));
      ASSERT_EQ(values[static_cast<std::size_t>(c)].integers, expected) << c;
    }
  }

  static std::int64_t sum(const std::vector<std::int64_t>& numbers) {
    return std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0});
  }

  std::shared_ptr<CountedFile> file_;
  std::unique_ptr<ParquetFile> parquet_;
  std::vector<std::size_t> columns_ = std::vector<std::size_t>(kColumns);
};

TEST_F(OpenGroupTest, ColumnsThatFitAreReadOnceByFewRequests) {
  {
    const auto reader = read_group(64 * kPiece);
    expect_rows(*reader, 0, kFirstRows);
    expect_rows(*reader, kFirstRows, kRows);
  }
  const std::vector<std::int64_t> reads = file_->take_reads();
  EXPECT_LE(reads.size(), 8U);
  EXPECT_LE(std::ranges::max(reads), kPiece);
  EXPECT_LE(sum(reads), file_->size());
}

TEST_F(OpenGroupTest, LargerOnesHaveBuffersThatKeepTheLimitTogether) {
  const auto reader = read_group(kPiece);
  expect_rows(*reader, 0, kFirstRows);
  const std::int64_t bytes = sum(file_->take_reads());
  EXPECT_LE(bytes, kPiece);
  EXPECT_GE(bytes, kPiece / 2);  // and use it
  expect_rows(*reader, kFirstRows, kRows);
}

TEST_F(OpenGroupTest, ABufferHoldsTheHeadOfAPageWhateverTheLimit) {
  const auto reader = read_group(0);
  expect_rows(*reader, 0, kFirstRows);
  EXPECT_LE(sum(file_->take_reads()), kColumns * (std::int64_t{16} << 10));
  expect_rows(*reader, kFirstRows, kRows);
}

TEST_F(OpenGroupTest, AReadThatFailsFailsTheReader) {
  file_->is_broken = true;
  for (const std::int64_t max_bytes : {64 * kPiece, kPiece}) {
    const auto read = [&] { expect_rows(*read_group(max_bytes), 0, kFirstRows); };
    EXPECT_TRUE(contains(error_of([&] { translate_damage("x", read); }), "the disk is broken"));
  }
}

TEST_F(OpenGroupTest, AReaderMayEndBeforeWhatItAskedForHasCome) {
  for (int i = 0; i < 20; ++i) read_group(64 * kPiece);
  EXPECT_LE(sum(file_->take_reads()), 20 * file_->size());
}

}  // namespace
}  // namespace satrap::data
