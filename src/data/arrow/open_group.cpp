#include "src/data/arrow/open_group.h"

#include <algorithm>

#include <arrow/io/caching.h>
#include <arrow/memory_pool.h>
#include <arrow/util/future.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>

namespace satrap::data {
namespace {

constexpr std::int64_t kLeastBuffer = std::int64_t{16} << 10;  // the head of a page fits into it
constexpr std::int64_t kCostlyPiece = std::int64_t{1} << 20;   // of a file whose requests cost time
constexpr std::int64_t kLargestHole = std::int64_t{8} << 10;   // read to save a request

/// Whether the chunks of these columns have at most `limit` bytes together.
bool fit_into(std::int64_t limit,
              const parquet::RowGroupMetaData& group,
              const std::vector<int>& columns) {
  for (const int column : columns) {
    const std::int64_t bytes = group.ColumnChunk(column)->total_compressed_size();
    if (bytes < 0 || bytes > limit) return false;
    limit -= bytes;
  }
  return true;
}

parquet::ReaderProperties with_buffers_of(std::int64_t bytes) {
  parquet::ReaderProperties properties(arrow::default_memory_pool());
  properties.enable_buffered_stream();
  properties.set_buffer_size(bytes);
  return properties;
}

}  // namespace

OpenGroup::OpenGroup(const SharedParquet& source,
                     int group,
                     std::span<const std::size_t> columns,
                     std::int64_t max_bytes)
    : groups_{group}, columns_(columns.begin(), columns.end()) {
  const std::int64_t num_columns = std::max<std::int64_t>(std::ssize(columns), 1);
  const std::int64_t share = std::min(max_bytes / num_columns, source.piece_bytes);
  file_ = parquet::ParquetFileReader::Open(
      source.file, with_buffers_of(std::max(share, kLeastBuffer)), source.metadata);
  if (source.piece_bytes >= kCostlyPiece &&
      fit_into(share * num_columns, *source.metadata->RowGroup(group), columns_)) {
    const arrow::io::CacheOptions options{.hole_size_limit = kLargestHole,
                                          .range_size_limit = source.piece_bytes,
                                          .lazy = false,
                                          .prefetch_limit = 0};
    file_->PreBuffer(groups_, columns_, arrow::io::default_io_context(), options);
    is_read_at_once_ = true;
  }
  group_ = file_->RowGroup(group);
}

OpenGroup::~OpenGroup() {
  if (is_read_at_once_) file_->WhenBuffered(groups_, columns_).Wait();
}

}  // namespace satrap::data
