#include "src/data/topic/column_messages.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "satrap/core/error.h"
#include "src/data/columnar/parquet.h"
#include "src/data/columnar/parquet_files.h"
#include "src/data/files/random_file.h"

namespace satrap::data {
namespace {

/// The bytes of a message.
class MessageBytes : public RandomFile {
 public:
  MessageBytes(std::string name, const KafkaMessage& message)
      : name_(std::move(name)), bytes_(message.value, static_cast<std::size_t>(message.size)) {}

  const std::string& name() const override { return name_; }
  std::int64_t size() const override { return std::ssize(bytes_); }
  std::int64_t piece_bytes() const override {
    constexpr std::int64_t kMostBytes = std::int64_t{64} << 10;
    return std::clamp<std::int64_t>(size(), 1, kMostBytes);
  }
  void read(std::int64_t begin, std::span<char> out) const override {
    if (begin < 0 || begin > size() || std::ssize(out) > size() - begin) {
      throw Error(ErrorCode::kInvalidData,
                  concat(name_, " has ", size(), " bytes, and bytes ", begin, " to ",
                         begin + std::ssize(out), " are to be read"));
    }
    std::copy_n(bytes_.data() + begin, out.size(), out.data());
  }

 private:
  const std::string name_;
  const std::string bytes_;
};

/// They are in memory together, of each message that is read ahead.
constexpr std::int64_t kMostRows = std::int64_t{1} << 18;

/// Throws Error(kInvalidData) for a description that cannot be true, and for too many rows.
void check_rows(const MappedParquet& source) {
  std::int64_t total = 0;
  for (const std::int64_t rows : source.file->rows_of_groups()) {
    const bool is_possible = rows >= 0 && rows <= kMostRows - total;
    total += is_possible ? rows : 0;
    if (is_possible) continue;
    throw Error(ErrorCode::kInvalidData,
                concat("'", source.path, "' cannot be read: it says that it has ",
                       total + std::min(rows, INT64_MAX - total), " rows; at most ", kMostRows,
                       " may be in one message"));
  }
}

}  // namespace

ColumnMessages::ColumnMessages(const Schema& schema, const std::string& name) : schema_(schema) {
  try {
    parquet_library();
  } catch (const Error& error) {
    throw Error(error.code(), concat("the messages of '", name, "' are columns: ", error.what()));
  }
}

void ColumnMessages::take(const KafkaMessage& message,
                          const std::string& partition,
                          std::int64_t& to_skip,
                          TextBlock& block) {
  const std::string place = concat(partition, ", offset ", message.offset);
  TextBlock::Columns columns;
  try {
    auto source = std::make_shared<const MappedParquet>(
        place, open_message(std::make_shared<const MessageBytes>(place, message)), schema_);
    check_rows(*source);
    columns.num_rows = source->num_rows;
    columns.source = std::move(source);
  } catch (const Error& error) {
    const bool is_of_message =
        error.code() == ErrorCode::kInvalidData || error.code() == ErrorCode::kInvalidConfig;
    if (!is_of_message) throw;
    columns.num_rows = 1;
    columns.fault = error.what();
  }
  columns.num_skipped = std::min(to_skip, columns.num_rows);
  to_skip -= columns.num_skipped;
  if (columns.num_skipped == columns.num_rows) return;
  columns.first_line = block.num_lines - columns.num_skipped;
  block.num_lines += columns.num_rows - columns.num_skipped;
  block.messages.push_back({.first_line = columns.first_line, .offset = message.offset});
  block.columns.push_back(std::move(columns));
}

}  // namespace satrap::data
