#include "satrap/data/sample.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/data/schema.h"
#include "src/data/column_map.h"
#include "src/data/decimal_commas.h"
#include "src/data/field_parse.h"
#include "src/data/file_format.h"
#include "src/data/file_list.h"
#include "src/data/foreign_text.h"
#include "src/data/json_sample.h"
#include "src/data/line_cutter.h"
#include "src/data/parquet_sample.h"

namespace satrap::data {
namespace {

constexpr std::string_view kDelimiters = ",\t;| ";
constexpr std::size_t kLinesForDelimiter = 1000;
constexpr double kNearlyAll = 0.9;
constexpr std::int64_t kMaxFields = 4'000'000;  // of a sample

struct Lines {
  std::vector<std::string> texts;  // not blank
  std::vector<bool> is_first;      // of its file
};

SchemaConfig text_with(char delimiter) {
  SchemaConfig text;
  text.delimiter = delimiter;
  return text;
}

/// How many fields most lines have, and the share of lines that have so many.
struct Fields {
  std::size_t number = 0;
  double share = 0.0;
};

Fields count_fields(const std::vector<std::string>& lines, char delimiter) {
  const std::size_t num_lines = std::min(lines.size(), kLinesForDelimiter);
  std::map<std::size_t, std::size_t> lines_with;
  for (std::size_t i = 0; i < num_lines; ++i) {
    ++lines_with[split_line(text_with(delimiter), lines[i]).size()];
  }
  const auto most =
      std::ranges::max_element(lines_with, {}, [](const auto& entry) { return entry.second; });
  return {most->first, static_cast<double>(most->second) / static_cast<double>(num_lines)};
}

/// Formats of text whose rows say nothing of what their columns mean.
void refuse_other_formats(FileFormat format, const std::string& line, const std::string& file) {
  const std::string foreign = foreign_text(line, true);
  if (foreign.empty() && format == FileFormat::kDelimited) return;
  throw Error(ErrorCode::kInvalidData,
              concat("'", file, "' ", foreign.empty() ? concat("is ", name_of(format)) : foreign,
                     "; a job for it is written by hand, as the README shows"));
}

/// Of a line within quotes, or at their beginning or end.
bool has_open_quote(const std::string& line) { return std::ranges::count(line, '"') % 2 != 0; }

char find_delimiter(const std::vector<std::string>& lines, const std::string& file) {
  char best = ',';
  std::size_t most = 1;
  for (const char delimiter : kDelimiters) {
    const Fields fields = count_fields(lines, delimiter);
    if (fields.share < kNearlyAll || fields.number <= most) continue;
    best = delimiter;
    most = fields.number;
  }
  if (most > 1) return best;
  throw Error(
      ErrorCode::kInvalidData,
      concat("'", file, "': neither comma, tab, semicolon, bar nor space divides its lines ",
             "into columns",
             std::ranges::any_of(lines, has_open_quote)
                 ? "; line ends within quotes are not read: replace them by spaces"
                 : ""));
}

/// A header has a word over a column of numbers or, where all is text, words that are all different
/// and do not occur below.
bool has_header(const std::vector<std::vector<std::string>>& rows) {
  const std::vector<std::string>& first = rows.front();
  bool is_all_text = true;
  for (std::size_t c = 0; c < first.size(); ++c) {
    std::size_t numbers = 0;
    std::size_t values = 0;
    for (std::size_t r = 1; r < rows.size(); ++r) {
      values += rows[r][c].empty() ? 0 : 1;
      numbers += is_number(rows[r][c]) ? 1 : 0;
    }
    const bool is_numeric =
        numbers > 0 && static_cast<double>(numbers) >= kNearlyAll * static_cast<double>(values);
    if (is_numeric && !first[c].empty() && !is_number(first[c])) return true;
    is_all_text = is_all_text && !is_numeric;
  }
  if (!is_all_text || rows.size() < 2) return false;
  if (std::set<std::string>(first.begin(), first.end()).size() < first.size()) return false;
  for (std::size_t c = 0; c < first.size(); ++c) {
    const auto is_same = [&](const auto& row) { return row[c] == first[c]; };
    if (std::any_of(rows.begin() + 1, rows.end(), is_same)) return false;
  }
  return true;
}

/// Lines that are not blank, whole blocks until there are enough.
Lines read_lines(const FileList& files, std::int64_t max_rows, Sample& sample) {
  const Schema schema;  // the format is one whose lines need none
  LineCutter cutter(schema, files.paths(), {}, {}, nullptr, FileFormat::kJson);
  Lines lines;
  TextBlock block;
  std::int64_t num_cut = 0;
  while (std::ssize(lines.texts) < max_rows) {
    if (!cutter.next(block)) {
      sample.is_whole = true;
      break;
    }
    num_cut += block.num_lines;
    const char* line = block.text_begin();
    for (std::int64_t i = 0; i < block.num_lines; ++i) {
      const char* const end = std::find(line, block.text_end(), '\n');
      if (!is_blank_line(line)) {
        lines.texts.emplace_back(line, end);
        lines.is_first.push_back(block.file_line == 1 && i == 0);
      }
      line = end + 1;
    }
  }
  const auto bytes = static_cast<double>(std::max<std::int64_t>(cutter.bytes_read(), 1));
  const double rows_per_byte = static_cast<double>(num_cut) / bytes;
  sample.total_rows = std::llround(rows_per_byte * static_cast<double>(files.total_bytes));
  return lines;
}

/// "'age', 'city'": names of the one that the other does not have, the first ones; "": there is
/// none.
std::string names_without(const std::vector<std::string>& names,
                          const std::vector<std::string>& others) {
  constexpr std::size_t kMostShown = 5;
  std::string text;
  std::size_t found = 0;
  for (const std::string& name : names) {
    if (std::ranges::count(others, name) > 0 || ++found > kMostShown) continue;
    text += concat(found == 1 ? "'" : ", '", name, "'");
  }
  return found > kMostShown ? concat(text, " and ", found - kMostShown, " more") : text;
}

std::string first_line_of(const std::string& path) {
  const Schema schema;  // as in read_lines
  LineCutter cutter(schema, {path}, {}, {.block_bytes = 4096}, nullptr, FileFormat::kJson);
  TextBlock block;
  if (!cutter.next(block)) return "";
  return {block.text_begin(), std::find(block.text_begin(), block.text_end(), '\n')};
}

/// A sample has the columns of all files by their places.
void require_same_header(const Sample& sample, const SchemaConfig& text) {
  const std::string& first = sample.files.front();
  for (const std::string& file : sample.files) {
    if (&file == &first || !sample.is_rereadable) continue;
    const std::vector<std::string> names = split_line(text, first_line_of(file));
    if (names == sample.names) continue;
    const std::string lacks = names_without(sample.names, names);
    const std::string has = names_without(names, sample.names);
    const bool is_row = std::ranges::none_of(
        names, [&](const std::string& name) { return std::ranges::count(sample.names, name) > 0; });
    throw Error(
        ErrorCode::kInvalidData,
        is_row ? concat("'", file, "' does not begin with the names of the columns, as '", first,
                        "' does: ", lacks, "; every file needs this line")
               : concat("'", file, "' has other columns than '", first, "'",
                        lacks.empty() ? "" : concat("; it lacks ", lacks),
                        has.empty() ? "" : concat("; only it has ", has),
                        lacks.empty() && has.empty() ? ": the same in another order" : "",
                        "; name files that have the same ones, and add the others to data.train ",
                        "of the configuration: training finds columns by their names"));
  }
}

/// The sample with its number of rows; throws an error with this message if there are none.
Sample whole(Sample sample, const std::string& message) {
  if (sample.num_rows == 0) throw Error(ErrorCode::kInvalidData, message);
  if (sample.is_whole) sample.total_rows = sample.num_rows + sample.num_ragged;
  return sample;
}

}  // namespace

Sample read_sample(const std::vector<std::string>& patterns, std::int64_t max_rows) {
  const FileList files = list_files(patterns);
  const FileFormat format = format_of("auto", files);
  if (is_columnar(format)) return read_parquet_sample(files, max_rows);
  Sample sample;
  sample.files = files.paths();
  sample.is_rereadable = files.rereadable;
  const Lines lines = read_lines(files, max_rows, sample);
  const std::string& file = sample.files.front();
  if (lines.texts.empty()) throw Error(ErrorCode::kInvalidData, concat("'", file, "' has no rows"));
  if (format == FileFormat::kJson || is_json_object(lines.texts.front())) {
    sample_json(lines.texts, max_rows, kMaxFields, sample);
    sample.is_json = true;
    if (format != FileFormat::kJson) sample.format = "json";
    if (sample.num_rows > 0 && sample.names.empty()) {
      throw Error(ErrorCode::kInvalidData,
                  concat("'", file, "': no key with a number, a text or a list is in 1 % of its ",
                         "objects or more; write rows that have the same keys"));
    }
    return whole(std::move(sample), concat("'", file, "' has no line that is a JSON object"));
  }
  refuse_other_formats(format, lines.texts.front(), file);
  // Another file may have other columns.
  const auto second = std::find(lines.is_first.begin() + 1, lines.is_first.end(), true);
  const std::vector<std::string> of_first_file(
      lines.texts.begin(), lines.texts.begin() + (second - lines.is_first.begin()));
  const char delimiter = find_delimiter(of_first_file, file);
  sample.delimiter = delimiter;
  const SchemaConfig text = text_with(delimiter);

  const std::size_t num_columns = count_fields(of_first_file, delimiter).number;
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < std::min(lines.texts.size(), kLinesForDelimiter); ++i) {
    if (i > 0 && lines.is_first[i]) continue;  // maybe the header once more
    rows.push_back(split_line(text, lines.texts[i]));
    if (rows.back().size() != num_columns) rows.pop_back();
  }
  sample.header = has_header(rows);
  for (std::size_t c = 0; c < num_columns; ++c) {
    sample.names.push_back(sample.header ? rows.front()[c] : concat("c", c));
  }
  if (sample.header) require_same_header(sample, text);

  const std::int64_t most_rows =
      std::min(max_rows, std::max<std::int64_t>(1, kMaxFields / std::ssize(sample.names)));
  sample.columns.resize(num_columns);
  for (std::size_t i = 0; i < lines.texts.size(); ++i) {
    if (sample.header && lines.is_first[i]) continue;
    if (sample.num_rows == most_rows) {
      sample.is_whole = false;
      break;
    }
    std::vector<std::string> fields = split_line(text, lines.texts[i]);
    if (fields.size() != num_columns) {
      ++sample.num_ragged;
      sample.num_open_quotes += has_open_quote(lines.texts[i]) ? 1 : 0;
      continue;
    }
    for (std::size_t c = 0; c < num_columns; ++c) {
      sample.columns[c].push_back(std::move(fields[c]));
    }
    ++sample.num_rows;
  }
  sample.decimal_comma = replace_decimal_commas(sample.columns);
  return whole(std::move(sample), concat("'", file, "' has a header and no rows"));
}

}  // namespace satrap::data
