#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace satrap::data {

/// The first rows of delimited text, JSON lines or Parquet, as texts: what can be known of files
/// before anybody has said what they mean. Quotes and spaces around fields are gone, and so is what
/// values have beyond 64 KiB.
struct Sample {
  std::vector<std::string> files;  // of all patterns, in reading order
  std::string delimiter;           // one character; "" of JSON and Parquet, which have none
  std::string format;              // data.format, where names do not show it; or ""
  bool decimal_comma = false;      // numbers had one; it is a point in `columns`
  bool header = false;             // the first line of every file names the columns
  std::vector<std::string> names;  // [columns]; without a header c0, c1, ...
  std::vector<std::vector<std::string>> columns;  // [columns][rows]
  std::vector<std::string> lists;  // names of columns with lists, which are read as ids alone
  bool is_json = false;
  std::int64_t num_rows = 0;
  std::int64_t num_rare = 0;         // of JSON: keys left out, because few rows have them
  std::int64_t num_ragged = 0;       // rows left out: they have another number of columns, or are
                                     // no JSON objects
  std::int64_t num_open_quotes = 0;  // of these: with a quote that is not closed
  bool is_whole = false;             // there are no other rows
  bool is_rereadable = true;         // false: standard input or a pipe
  std::int64_t total_rows = 0;       // of all files, an estimate unless is_whole; 0: unknown
};

/// Known properties of the files; the others are found out.
struct SampleOptions {
  std::string delimiter = {};       // one character
  std::optional<bool> header = {};  // whether the first line names the columns
};

/// Reads up to `max_rows` rows of the files that `patterns` name (as data.train.path), and about
/// 128 MiB of them. The
/// delimiter is the one of comma, tab, semicolon, bar and space that divides the first line and
/// nearly all others into the same number of fields, but not one that is within few fields of
/// another: that of a list. Throws Error(kIo | kInvalidData) if the files cannot be
/// read, are of another format, or have headers that are not the same.
Sample read_sample(const std::vector<std::string>& patterns,
                   std::int64_t max_rows,
                   const SampleOptions& options = {});

}  // namespace satrap::data
