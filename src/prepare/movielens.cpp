#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "satrap/core/error.h"
#include "satrap/core/text.h"
#include "src/prepare/data_set.h"
#include "src/prepare/fields.h"
#include "src/prepare/file_lines.h"
#include "src/prepare/history.h"
#include "src/prepare/parts.h"
#include "src/prepare/sorted_lines.h"

namespace satrap::prepare {
namespace {

constexpr std::int64_t kRatingLines = 8192;
constexpr std::array<std::string_view, 4> kRatingColumns = {"userId", "movieId", "rating",
                                                            "timestamp"};
constexpr double kLiked = 4.0;           // a rating of at least this is positive
constexpr std::int64_t kTestShare = 10;  // the last tenth of the ratings is held out
constexpr std::size_t kMoviesOfHistory = 50;

/// ratings.csv has a header and commas, ratings.dat of 1M and 10M "::", u.data of 100K tabs.
struct RatingsFormat {
  std::string delimiter;
  bool has_header;
};

RatingsFormat format_of(const std::string& path) {
  if (path.ends_with(".csv") || path.find(".csv.") != std::string::npos) return {",", true};
  return {path.ends_with(".dat") ? "::" : "\t", false};
}

bool is_liked(std::string_view rating, const std::string& place) {
  const std::optional<double> number = parse_number<double>(rating);
  if (number && *number >= 0.0 && *number <= 5.0) return *number >= kLiked;
  throw Error(ErrorCode::kInvalidData,
              concat(place, ": the rating must be from 0 to 5, got '", printable(rating), "'"));
}

/// Sorts "label<TAB>movie" by user and time.
void sort_by_user(Workspace& workspace, LineSorter& sorter, const std::string& path) {
  const RatingsFormat format = format_of(path);
  if (format.has_header) Header(path, format.delimiter).check(kRatingColumns);
  FileLines source({path}, format.has_header ? 1 : 0);
  LineBlock block;
  std::vector<std::string_view> fields;
  std::string text;
  while (source.next(block, kRatingLines)) {
    block.for_each([&](std::string_view line, std::int64_t i) {
      const std::string place = block.place(i);
      split_fields(line, format.delimiter, fields);
      check_num_fields(fields, kRatingColumns.size(), place);
      text.assign(is_liked(fields[2], place) ? "1\t" : "0\t").append(fields[1]);
      sorter.add({.first = integer_field(fields[0], "the user", place),
                  .second = integer_field(fields[3], "the time", place)},
                 text);
    });
    workspace.show("sorting ratings by user", source, block.first_row);
  }
  sorter.finish();
}

/// Sorts the rows "label, user, movie, history" by time.
void sort_by_time(const LineSorter& by_user, LineSorter& by_time) {
  SortedLines lines(by_user);
  SortKey key;
  std::string_view text;
  History history(kMoviesOfHistory, 1);
  while (lines.next(key, text)) {
    const std::string_view label = text.substr(0, 1), movie = text.substr(2);
    std::string row = concat(label, "\t", key.first, "\t", movie);
    history.append_before(key.first, key.second, row);
    by_time.add({.first = key.second, .second = key.first}, row);
    if (label == "1") history.add(key.first, key.second, {movie});
  }
  by_time.finish();
}

}  // namespace

void prepare_movielens(Workspace& workspace, const std::vector<std::string>& paths) {
  LineSorter by_time(workspace, "by-time");
  if (!by_time.is_finished()) {
    LineSorter by_user(workspace, "by-user");
    if (!by_user.is_finished()) sort_by_user(workspace, by_user, paths.front());
    sort_by_time(by_user, by_time);
  }
  const std::int64_t first_of_test = by_time.num_lines() - by_time.num_lines() / kTestShare;
  SortedSource source(by_time);
  write_parts(
      workspace, source, [&](const LineBlock& block, std::map<std::string, std::string>& rows) {
        block.for_each([&](std::string_view line, std::int64_t i) {
          line.remove_prefix(line.find('\t') + 1);
          rows[block.first_row + i < first_of_test ? "train" : "test"].append(line).push_back('\n');
        });
      });
}

}  // namespace satrap::prepare
