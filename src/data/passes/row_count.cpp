#include "satrap/data/row_count.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "satrap/core/error.h"
#include "satrap/data/pass_progress.h"
#include "satrap/data/schema.h"
#include "src/data/columnar/parquet_files.h"
#include "src/data/files/file_list.h"
#include "src/data/terms/file_format.h"
#include "src/data/text/line_cutter.h"

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

Counted count(const Dataset& data, std::int64_t enough_bytes) {
  const FileList& files = data.files(Role::kTrain);
  LineCutter cutter(data.schema(), files.paths(), {.max_rows = data.config().train.max_rows}, {},
                    nullptr, data.format(Role::kTrain));
  TextBlock block;
  Counted counted;
  PassProgress progress("counting rows", files.total_bytes, data.stop());
  while (enough_bytes == 0 || cutter.bytes_read() < enough_bytes) {
    counted.is_all = !cutter.next(block);
    if (counted.is_all) break;
    counted.rows = block.first_row + block.num_lines;
    progress.note(cutter.bytes_read());
  }
  counted.bytes = cutter.bytes_read();
  return counted;
}

std::int64_t limited(const DataConfig& config, std::int64_t rows) {
  return config.train.max_rows > 0 ? std::min(rows, config.train.max_rows) : rows;
}

}  // namespace

std::int64_t count_rows(const Dataset& data) {
  const DataConfig& config = data.config();
  if (data.is_generated()) return limited(config, config.synthetic.rows);
  if (is_columnar(data.format(Role::kTrain))) {
    return limited(config, count_parquet_rows(data.files(Role::kTrain).paths()));
  }
  return limited(config, count(data, 0).rows);
}

std::int64_t estimate_rows(const Dataset& data) {
  const DataConfig& config = data.config();
  if (data.is_generated()) return count_rows(data);
  if (data.is_topic()) return limited(config, 0);
  const FileList& files = data.files(Role::kTrain);
  if (!files.rereadable) return limited(config, 0);
  if (is_columnar(data.format(Role::kTrain))) return count_rows(data);
  const Counted counted = count(data, kEnoughBytes);
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

std::int64_t batch_size_of(const Dataset& data) {
  if (data.config().batch_size != 0) return data.config().batch_size;
  std::int64_t num_rows = 0;
  try {
    num_rows = estimate_rows(data);
  } catch (const Error&) {
    num_rows = 0;
  }
  return fitting_batch_size(num_rows);
}

void choose_batch_size(DataConfig& config) {
  if (config.batch_size == 0) config.batch_size = batch_size_of(Dataset(config));
}

std::int64_t count_first_eval_row(const Dataset& data) {
  const EvalConfig& eval = data.config().eval;
  SATRAP_CHECK(eval.by_tail(), "data.eval.by is '", eval.by, "', not tail");
  const std::int64_t rows = count_rows(data);
  const auto kept = std::llround(eval.fraction * static_cast<double>(rows));
  return std::max<std::int64_t>(0, rows - std::max<std::int64_t>(1, kept));
}

}  // namespace satrap::data
