#include "src/data/columnar/parquet_groups.h"

#include <algorithm>
#include <utility>

#include "src/data/columnar/value_text.h"

namespace satrap::data {

std::int64_t ParquetGroup::bytes_to(std::int64_t row) const {
  if (source->num_rows == 0) return first_byte + file_bytes;
  const auto rows = static_cast<double>(rows_before + row - first_row);
  const double share = rows / static_cast<double>(source->num_rows);
  return first_byte + static_cast<std::int64_t>(share * static_cast<double>(file_bytes));
}

bool may_select(const ParquetGroup& group, const RowSelection* selection) {
  if (selection == nullptr || group.num_rows == 0) return true;
  return selection->may_have_any([&](std::size_t place) {
    const ParquetFile& file = *group.source->file;
    const std::size_t column = group.source->map.selecting()[place];
    const ParquetFile::Kind kind = file.columns()[column].kind;
    std::optional<ColumnBounds> bounds;
    ParquetValues values;
    if (!file.find_bounds(group.group, column, values)) return bounds;
    NumberText least, greatest;
    const bool is_text = kind == ParquetFile::Kind::kText || ParquetFile::is_of_time(kind);
    bounds = {.least = std::string(text_of(values, kind, 0, least)),
              .greatest = std::string(text_of(values, kind, 1, greatest)),
              .are_numbers = !is_text};
    const auto is_in_order = [](const std::string& time) { return time.find('-', 1) == 4; };
    if (ParquetFile::is_of_time(kind) &&
        !(is_in_order(bounds->least) && is_in_order(bounds->greatest))) {
      bounds.reset();  // outside the years whose texts are in order
    }
    return bounds;
  });
}

ParquetGroups::ParquetGroups(const Schema& schema,
                             FileList files,
                             std::int64_t max_rows,
                             std::shared_ptr<FileRecords> records,
                             std::function<bool()> is_cancelled)
    : schema_(schema),
      files_(std::move(files)),
      max_rows_(max_rows),
      records_(std::move(records)),
      is_cancelled_(std::move(is_cancelled)) {
  last_.is_last = true;
}

bool ParquetGroups::next(ParquetGroup& group) {
  const std::int64_t first_row = last_.first_row + last_.num_rows;
  if (max_rows_ > 0 && first_row >= max_rows_) return false;
  if (last_.is_last) {
    if (next_file_ == files_.files.size()) return false;
    const DataFile& file = files_.files[next_file_];
    if (records_) records_->begin(next_file_, first_row);
    last_ = {.source = std::make_shared<const MappedParquet>(file.path, schema_, is_cancelled_),
             .file = next_file_++,
             .first_byte = next_byte_,
             .file_bytes = file.bytes};
    next_byte_ += file.bytes;
  }
  const std::vector<std::int64_t>& rows = last_.source->file->rows_of_groups();
  last_.rows_before += last_.num_rows;
  last_.first_row = first_row;
  last_.num_rows = rows.empty() ? 0 : rows[static_cast<std::size_t>(++last_.group)];
  last_.is_last = last_.group + 1 == std::ssize(rows);
  group = last_;
  return true;
}

}  // namespace satrap::data
