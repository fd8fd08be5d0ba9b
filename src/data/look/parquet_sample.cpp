#include "src/data/look/parquet_sample.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "satrap/core/error.h"
#include "satrap/core/text.h"
#include "src/data/columnar/parquet.h"
#include "src/data/columnar/parquet_files.h"
#include "src/data/columnar/value_text.h"
#include "src/data/look/sample_value.h"

namespace satrap::data {
namespace {

constexpr std::int64_t kRowsAtOnce = 4096;
constexpr std::int64_t kFileBytes = std::int64_t{32} << 20;  // in memory: few rows are wanted
constexpr char kBetweenElements = '|';

std::string element_text(const ParquetValues& values, ParquetFile::Kind kind, std::size_t element) {
  if (!values.presence.empty() && values.presence[element] == 0) return "";
  NumberText buffer;
  std::string text = sampled_value(text_of(values, kind, element, buffer));
  const bool is_float = kind == ParquetFile::Kind::kFloat || kind == ParquetFile::Kind::kDouble;
  if (is_float && text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

std::string row_text(const ParquetValues& values,
                     const ParquetFile::Column& column,
                     std::size_t row) {
  if (!column.is_list) return element_text(values, column.kind, row);
  std::string text;
  const auto begin = static_cast<std::size_t>(row == 0 ? 0 : values.ends[row - 1]);
  for (std::size_t i = begin; i < static_cast<std::size_t>(values.ends[row]); ++i) {
    if (text.size() >= kMaxValueBytes) break;
    if (i > begin) text += kBetweenElements;
    text += element_text(values, column.kind, i);
  }
  return text;
}

/// Reads the rows of one file until there are `max_rows`, or enough bytes of them.
void add_rows(const ParquetFile& file,
              const std::vector<std::size_t>& columns,
              std::int64_t max_rows,
              std::int64_t& num_bytes,
              Sample& sample) {
  std::vector<ParquetValues> values(columns.size());
  for (std::size_t g = 0; g < file.rows_of_groups().size(); ++g) {
    std::int64_t left = file.rows_of_groups()[g];
    if (left == 0 || sample.num_rows == max_rows || num_bytes >= kMaxSampleBytes) continue;
    const auto reader = file.read_group(static_cast<std::int64_t>(g), columns, kFileBytes);
    while (left > 0 && sample.num_rows < max_rows && num_bytes < kMaxSampleBytes) {
      const std::int64_t rows = std::min({kRowsAtOnce, left, max_rows - sample.num_rows});
      reader->read(rows, values);
      for (std::size_t r = 0; r < static_cast<std::size_t>(rows) && num_bytes < kMaxSampleBytes;
           ++r) {
        for (std::size_t c = 0; c < columns.size(); ++c) {
          sample.columns[c].push_back(row_text(values[c], file.columns()[columns[c]], r));
          num_bytes += std::ssize(sample.columns[c].back());
        }
        ++sample.num_rows;
      }
      left -= rows;
    }
  }
}

/// Lists are read as ids alone, which floating-point numbers seldom are.
bool is_sampled(const ParquetFile::Column& column) {
  using Kind = ParquetFile::Kind;
  const bool is_float = column.kind == Kind::kFloat || column.kind == Kind::kDouble;
  return column.kind != Kind::kOther && !ParquetFile::is_of_time(column.kind) &&
         !(column.is_list && is_float);
}

/// Places of the columns with the names of the sample; of the first file, all that are read.
std::vector<std::size_t> places_of(const ParquetFile& file,
                                   const std::string& path,
                                   std::vector<std::string>& names) {
  std::vector<std::size_t> places;
  const std::vector<ParquetFile::Column>& columns = file.columns();
  for (std::size_t i = 0; names.empty() && i < columns.size(); ++i) {
    if (is_sampled(columns[i])) places.push_back(i);
  }
  for (const std::size_t place : places) names.push_back(columns[place].name);
  std::unordered_map<std::string_view, std::size_t> by_name;
  for (std::size_t i = 0; i < columns.size(); ++i) by_name.try_emplace(columns[i].name, i);
  for (std::size_t n = places.size(); n < names.size(); ++n) {
    const auto found = by_name.find(names[n]);
    if (found == by_name.end() || !is_sampled(columns[found->second])) {
      throw Error(ErrorCode::kInvalidData,
                  concat("'", path, "' has no column '", printable(names[n]),
                         "' as the file before it does"));
    }
    places.push_back(found->second);
  }
  return places;
}

}  // namespace

Sample read_parquet_sample(const FileList& files, std::int64_t max_rows) {
  Sample sample;
  sample.files = files.paths();
  sample.header = true;
  sample.total_rows = count_parquet_rows(sample.files);
  std::int64_t num_bytes = 0;
  for (const std::string& path : sample.files) {
    if (sample.num_rows == max_rows || num_bytes >= kMaxSampleBytes) break;
    const std::unique_ptr<ParquetFile> file = open_parquet(path);
    const std::vector<std::size_t> places = places_of(*file, path, sample.names);
    if (places.empty()) {
      throw Error(ErrorCode::kInvalidData,
                  concat("'", path, "' has no column of a type that satrap reads"));
    }
    if (sample.columns.empty()) {
      for (const std::size_t place : places) {
        const ParquetFile::Column& column = file->columns()[place];
        if (column.is_list) sample.lists.push_back(column.name);
      }
    }
    sample.columns.resize(places.size());
    translate_damage(path, [&] { add_rows(*file, places, max_rows, num_bytes, sample); });
  }
  sample.is_whole = sample.num_rows == sample.total_rows;
  if (sample.num_rows > 0) return sample;
  throw Error(ErrorCode::kInvalidData, concat("'", sample.files.front(), "' has no rows"));
}

}  // namespace satrap::data
