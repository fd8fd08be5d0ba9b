#include "satrap/data/row_count.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "satrap/core/error.h"
#include "satrap/data/pass_progress.h"
#include "satrap/data/schema.h"
#include "satrap/data/topic.h"
#include "src/data/file_format.h"
#include "src/data/file_list.h"
#include "src/data/line_cutter.h"
#include "src/data/parquet_files.h"

namespace satrap::data {
namespace {

/// Reads whole blocks until these many bytes have come from the disk.
constexpr std::int64_t kEnoughBytes = std::int64_t{8} << 20;

/// Rows up to where reading has stopped.
struct Counted {
  std::int64_t rows = 0;
  std::int64_t bytes = 0;  // read from the disk
  bool is_all = false;
};

Counted count(const DataConfig& config, const FileList& files, std::int64_t enough_bytes) {
  const Schema schema = resolve_schema(config);
  LineCutter cutter(schema, files.paths(), {.max_rows = config.train.max_rows}, {}, nullptr,
                    format_of(config.format, files));
  TextBlock block;
  Counted counted;
  PassProgress progress("counting rows", files.total_bytes, config.stop);
  while (enough_bytes == 0 || cutter.bytes_read() < enough_bytes) {
    counted.is_all = !cutter.next(block);
    if (counted.is_all) break;
    counted.rows = block.first_row + block.num_lines;
    progress.note(cutter.bytes_read());
  }
  counted.bytes = cutter.bytes_read();
  return counted;
}

bool are_columnar(const DataConfig& config, const FileList& files) {
  return is_columnar(format_of(config.format, files));
}

std::int64_t limited(const DataConfig& config, std::int64_t rows) {
  return config.train.max_rows > 0 ? std::min(rows, config.train.max_rows) : rows;
}

}  // namespace

std::int64_t count_rows(const DataConfig& config) {
  if (config.resolved_format() == "synthetic") return limited(config, config.synthetic.rows);
  const FileList files = list_files(config.train.path);
  if (are_columnar(config, files)) return limited(config, count_parquet_rows(files.paths()));
  return limited(config, count(config, files, 0).rows);
}

std::int64_t estimate_rows(const DataConfig& config) {
  if (config.resolved_format() == "synthetic") return count_rows(config);
  if (reads_topic(config)) return limited(config, 0);
  const FileList files = list_files(config.train.path);
  if (!files.rereadable) return limited(config, 0);
  if (are_columnar(config, files)) return count_rows(config);
  const Counted counted = count(config, files, kEnoughBytes);
  if (counted.is_all || counted.bytes == 0) return limited(config, counted.rows);
  const double share = static_cast<double>(counted.bytes) / static_cast<double>(files.total_bytes);
  return limited(config, std::llround(static_cast<double>(counted.rows) / std::min(share, 1.0)));
}

std::int64_t fitting_batch_size(std::int64_t num_rows) {
  constexpr std::int64_t kSteps = 200;
  constexpr std::int64_t kMin = 32, kMax = 2048;
  if (num_rows == 0) return kMax;
  const auto most = static_cast<std::uint64_t>(num_rows / kSteps);
  return std::clamp(static_cast<std::int64_t>(std::bit_floor(most)), kMin, kMax);
}

void choose_batch_size(DataConfig& config) {
  if (config.batch_size != 0) return;
  std::int64_t num_rows = 0;
  try {
    num_rows = estimate_rows(config);
  } catch (const Error&) {
    num_rows = 0;
  }
  config.batch_size = fitting_batch_size(num_rows);
}

std::int64_t first_eval_row(const DataConfig& config) {
  SATRAP_CHECK(config.eval.by_tail(), "data.eval.by is '", config.eval.by, "', not tail");
  if (config.eval.first_row >= 0) return config.eval.first_row;
  const std::int64_t rows = count_rows(config);
  const auto kept = std::llround(config.eval.fraction * static_cast<double>(rows));
  return std::max<std::int64_t>(0, rows - std::max<std::int64_t>(1, kept));
}

}  // namespace satrap::data
