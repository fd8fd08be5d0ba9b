#include "satrap/data/sample.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/text.h"
#include "satrap/data/schema.h"
#include "src/data/files/file_list.h"
#include "src/data/files/foreign_text.h"
#include "src/data/look/decimal_commas.h"
#include "src/data/look/json_sample.h"
#include "src/data/look/parquet_sample.h"
#include "src/data/look/sample_value.h"
#include "src/data/rows/field_parse.h"
#include "src/data/terms/file_format.h"
#include "src/data/text/column_map.h"
#include "src/data/text/line_cutter.h"
#include "src/data/text/quoted_lines.h"

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

/// Lines from `first` on, of one file, as rows: with a delimiter, fields in quotes may have line
/// ends.
void add_rows_of_file(const Lines& lines,
                      std::size_t first,
                      std::size_t end,
                      char delimiter,
                      Lines& rows) {
  std::string text;
  for (std::size_t i = first; i < end; ++i) text.append(lines.texts[i]).append(1, '\n');
  char stand_in = 0;
  QuotedLines(text_with(delimiter))
      .join(text.data(), text.data(), text.data() + text.size(), /*is_all=*/true, stand_in);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t row_end = text.find('\n', at);
    std::string& row = rows.texts.emplace_back(text, at, row_end - at);
    if (stand_in != 0) std::ranges::replace(row, stand_in, '\n');
    rows.is_first.push_back(lines.is_first[first] && at == 0);
    at = row_end + 1;
  }
}

Lines rows_of(const Lines& lines, char delimiter, std::size_t most_lines) {
  const std::size_t num_lines = std::min(lines.texts.size(), most_lines);
  Lines rows;
  for (std::size_t first = 0, end = 0; first < num_lines; first = end) {
    for (end = first + 1; end < num_lines && !lines.is_first[end];) ++end;
    add_rows_of_file(lines, first, end, delimiter, rows);
  }
  return rows;
}

/// Rows as a delimiter divides them.
struct Division {
  char delimiter = ',';
  std::vector<std::vector<std::string>> rows;
  std::size_t num_fields = 0;  // of most rows
  double share = 0.0;          // of the rows that have so many

  /// The first line is a header, or a row like the others.
  bool fits() const {
    return num_fields > 1 && share >= kNearlyAll && rows.front().size() == num_fields;
  }

  /// In how many fields this character is found.
  std::size_t num_fields_with(char c) const {
    std::set<std::size_t> fields;
    for (const std::vector<std::string>& row : rows) {
      for (std::size_t i = 0; i < row.size() && row.size() == num_fields; ++i) {
        if (row[i].find(c) != std::string::npos) fields.insert(i);
      }
    }
    return fields.size();
  }
};

Division divide(const Lines& lines, char delimiter) {
  Division division;
  division.delimiter = delimiter;
  std::map<std::size_t, std::size_t> rows_with;
  for (const std::string& row : rows_of(lines, delimiter, kLinesForDelimiter).texts) {
    ++rows_with[division.rows.emplace_back(split_line(text_with(delimiter), row)).size()];
  }
  const auto most =
      std::ranges::max_element(rows_with, {}, [](const auto& entry) { return entry.second; });
  division.num_fields = most->first;
  division.share = static_cast<double>(most->second) / static_cast<double>(division.rows.size());
  return division;
}

/// Whether a delimiter divides rows better than the one before it. Lists within a field have a
/// separator of their own: it is found in fewer fields than the other way round.
bool is_better(const Division& division, const Division& before) {
  const std::size_t inner = division.num_fields_with(before.delimiter);
  const std::size_t outer = before.num_fields_with(division.delimiter);
  return inner != outer ? inner < outer : division.num_fields > before.num_fields;
}

/// Formats of text whose rows say nothing of what their columns mean.
void refuse_other_formats(FileFormat format, const std::string& line, const std::string& file) {
  const std::string foreign = foreign_text(line, true);
  if (foreign.empty() && format == FileFormat::kDelimited) return;
  throw Error(ErrorCode::kInvalidData,
              concat("'", file, "' ", foreign.empty() ? concat("is ", name_of(format)) : foreign,
                     format == FileFormat::kDelimited && foreign.find("libsvm") == std::string::npos
                         ? ""
                         : "; a job for it is written by hand, as docs/data.md shows"));
}

/// Whether a line has a quote that is not closed.
bool has_open_quote(const std::string& line) { return std::ranges::count(line, '"') % 2 != 0; }

/// Refuses a file whose first lines are comments or a title, and says where its table begins.
void refuse_lines_before(const Lines& lines, const std::string& file) {
  constexpr std::size_t kMostLines = 20;
  for (std::size_t first = 1; first < std::min(kMostLines, lines.texts.size() - 1); ++first) {
    const Lines rest = {
        {lines.texts.begin() + static_cast<std::ptrdiff_t>(first), lines.texts.end()},
        {lines.is_first.begin() + static_cast<std::ptrdiff_t>(first), lines.is_first.end()}};
    for (const char delimiter : std::string_view(",\t;|")) {
      if (!divide(rest, delimiter).fits()) continue;
      const bool are_comments = lines.texts.front().starts_with('#');
      throw Error(ErrorCode::kInvalidData,
                  concat("'", file, "': its table begins after ", first, " other line",
                         first == 1 ? "" : "s", ", the first is '",
                         lines.texts.front().substr(0, 40), "'; leave them out: ",
                         are_comments ? concat("grep -v '^#' ", file)
                                      : concat("tail -n +", first + 1, " ", file)));
    }
  }
}

Division find_delimiter(const Lines& lines, const std::string& file) {
  std::optional<Division> best;
  for (const char delimiter : kDelimiters) {
    Division division = divide(lines, delimiter);
    if (division.fits() && (!best || is_better(division, *best))) best = std::move(division);
  }
  if (best) return *std::move(best);
  refuse_lines_before(lines, file);
  throw Error(
      ErrorCode::kInvalidData,
      concat("'", file, "': neither comma, tab, semicolon, bar nor space divides its lines ",
             "into the same columns as its first line; name another one with --delimiter"));
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
  std::int64_t num_bytes = 0;
  while (std::ssize(lines.texts) < max_rows && num_bytes < kMaxSampleBytes) {
    if (!cutter.next(block)) {
      sample.is_whole = true;
      break;
    }
    num_cut += block.num_lines;
    num_bytes += block.text_end() - block.text_begin();
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
  const std::set<std::string_view> known(others.begin(), others.end());
  std::string text;
  std::size_t found = 0;
  for (const std::string& name : names) {
    if (known.contains(name) || ++found > kMostShown) continue;
    text += concat(found == 1 ? "'" : ", '", printable(name), "'");
  }
  return found > kMostShown ? concat(text, " and ", found - kMostShown, " more") : text;
}

std::string first_line_of(const std::string& path) {
  const Schema schema;  // as in read_lines
  LineCutter cutter(schema, {path}, {}, {.block_bytes = 4096}, nullptr, FileFormat::kJson);
  TextBlock block;
  if (!cutter.next(block)) return "";
  const char* const begin = block.text_begin();
  return {begin, std::find(begin, block.text_end(), '\n')};
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
    const std::set<std::string_view> known(sample.names.begin(), sample.names.end());
    const bool is_row =
        std::ranges::none_of(names, [&](const std::string& name) { return known.contains(name); });
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

Sample read_sample(const std::vector<std::string>& patterns,
                   std::int64_t max_rows,
                   const SampleOptions& options) {
  const FileList files = list_files(patterns);
  const FileFormat format = format_of(DataFormat::kAuto, files);
  if (is_columnar(format)) return read_parquet_sample(files, max_rows);
  Sample sample;
  sample.files = files.paths();
  sample.is_rereadable = files.rereadable;
  const Lines lines = read_lines(files, max_rows, sample);
  const std::string& file = sample.files.front();
  if (lines.texts.empty()) throw Error(ErrorCode::kInvalidData, concat("'", file, "' has no rows"));
  if (const std::string foreign = foreign_text(lines.texts.front(), true);
      foreign.starts_with("is a JSON array")) {
    throw Error(ErrorCode::kInvalidData, concat("'", file, "' ", foreign));
  }
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
  const std::ptrdiff_t of_first = second - lines.is_first.begin();
  const Lines first_file = {{lines.texts.begin(), lines.texts.begin() + of_first},
                            {lines.is_first.begin(), second}};
  const Division division = options.delimiter.empty()
                                ? find_delimiter(first_file, file)
                                : divide(first_file, options.delimiter.front());
  sample.delimiter = division.delimiter;
  const SchemaConfig text = text_with(division.delimiter);
  const Lines rows = rows_of(lines, division.delimiter, lines.texts.size());

  const std::size_t num_columns = division.num_fields;
  std::vector<std::vector<std::string>> first_rows;
  for (const std::vector<std::string>& row : division.rows) {
    if (row.size() == num_columns) first_rows.push_back(row);
  }
  const bool begins_right = division.rows.front().size() == num_columns;
  sample.header = options.header.value_or(begins_right && has_header(first_rows));
  if (sample.header && !begins_right) {
    throw Error(ErrorCode::kInvalidData,
                concat("'", file, "': the header has ", division.rows.front().size(),
                       " columns, and most rows have ", num_columns));
  }
  for (std::size_t c = 0; c < num_columns; ++c) {
    sample.names.push_back(sample.header ? first_rows.front()[c] : concat("c", c));
  }
  if (sample.header) require_same_header(sample, text);

  const std::int64_t most_rows =
      std::min(max_rows, std::max<std::int64_t>(1, kMaxFields / std::ssize(sample.names)));
  sample.columns.resize(num_columns);
  for (std::size_t i = 0; i < rows.texts.size(); ++i) {
    if (sample.header && rows.is_first[i]) continue;
    if (sample.num_rows == most_rows) {
      sample.is_whole = false;
      break;
    }
    std::vector<std::string> fields = split_line(text, rows.texts[i]);
    if (fields.size() != num_columns) {
      ++sample.num_ragged;
      sample.num_open_quotes += has_open_quote(rows.texts[i]) ? 1 : 0;
      continue;
    }
    for (std::size_t c = 0; c < num_columns; ++c) {
      const bool is_long = fields[c].size() > kMaxValueBytes;
      sample.columns[c].push_back(is_long ? sampled_value(fields[c]) : std::move(fields[c]));
    }
    ++sample.num_rows;
  }
  sample.decimal_comma = replace_decimal_commas(sample.columns);
  return whole(std::move(sample), concat("'", file, "' has a header and no rows"));
}

}  // namespace satrap::data
