#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <string_view>

#include "satrap/core/error.h"
#include "satrap/core/json.h"
#include "satrap/core/text.h"
#include "src/prepare/data_set.h"
#include "src/prepare/fields.h"
#include "src/prepare/file_lines.h"
#include "src/prepare/parts.h"

namespace satrap::prepare {
namespace {

constexpr std::array<std::string_view, 24> kAvazuColumns = {
    "id",         "click",        "hour",         "C1",
    "banner_pos", "site_id",      "site_domain",  "site_category",
    "app_id",     "app_domain",   "app_category", "device_id",
    "device_ip",  "device_model", "device_type",  "device_conn_type",
    "C14",        "C15",          "C16",          "C17",
    "C18",        "C19",          "C20",          "C21"};
constexpr std::size_t kClick = 1, kHour = 2;  // of kAvazuColumns
constexpr std::int64_t kAvazuScanLines = 65536;
constexpr std::int64_t kShareOfOneDay = 10;  // held out, if the file has a single day
constexpr std::array<std::string_view, 24> kHours = {
    "0",  "1",  "2",  "3",  "4",  "5",  "6",  "7",  "8",  "9",  "10", "11",
    "12", "13", "14", "15", "16", "17", "18", "19", "20", "21", "22", "23"};

/// A time such as 14102100: the year, month, day and hour, two digits each.
struct Hour {
  std::int64_t day;     // YYMMDD
  std::size_t hour;     // 0 to 23
  std::size_t weekday;  // 0: Sunday
};

Hour parse_hour(std::string_view field, const std::string& place) {
  const std::int64_t number = integer_field(field, "hour", place);
  constexpr int kCentury = 2000;
  const std::chrono::year_month_day date{
      std::chrono::year(kCentury + static_cast<int>(number / 1'000'000)),
      std::chrono::month(static_cast<unsigned>(number / 10'000 % 100)),
      std::chrono::day(static_cast<unsigned>(number / 100 % 100))};
  const std::int64_t hour = number % 100;
  if (number < 0 || number > 99'999'999 || !date.ok() || hour >= std::ssize(kHours)) {
    throw Error(ErrorCode::kInvalidData,
                concat(place, ": hour must be YYMMDDHH, got '", printable(field), "'"));
  }
  return {.day = number / 100,
          .hour = static_cast<std::size_t>(hour),
          .weekday = std::chrono::weekday(date).c_encoding()};
}

struct Days {
  std::int64_t rows = 0, first = 0, last = 0;
};

/// The days of the file; found once.
Days find_days(Workspace& workspace, const std::vector<std::string>& paths) {
  const std::string stage = "days";
  if (workspace.stage(stage) == nullptr) {
    FileLines source(paths, 1);
    LineBlock block;
    std::vector<std::string_view> fields;
    Days days{.rows = 0, .first = 999'999, .last = 0};
    while (source.next(block, kAvazuScanLines)) {
      block.for_each([&](std::string_view line, std::int64_t i) {
        split_fields(line, ",", fields);
        check_num_fields(fields, kAvazuColumns.size(), block.place(i));
        const Hour hour = parse_hour(fields[kHour], block.place(i));
        days.first = std::min(days.first, hour.day);
        days.last = std::max(days.last, hour.day);
      });
      days.rows += block.num_lines;
      workspace.show("looking for the last day", source, days.rows);
    }
    workspace.finish_stage(
        stage, {{"rows", days.rows}, {"first_day", days.first}, {"last_day", days.last}});
  }
  const auto& found = *workspace.stage(stage);
  return {.rows = integer_at(found, "rows"),
          .first = integer_at(found, "first_day"),
          .last = integer_at(found, "last_day")};
}

}  // namespace

void prepare_avazu(Workspace& workspace, const std::vector<std::string>& paths) {
  Header(paths.front(), ",").check(kAvazuColumns);
  const Days days = find_days(workspace, paths);
  const bool one_day = days.first == days.last;
  const std::int64_t first_of_test = days.rows - days.rows / kShareOfOneDay;
  FileLines source(paths, 1);
  write_parts(workspace, source,
              [&](const LineBlock& block, std::map<std::string, std::string>& rows) {
                std::vector<std::string_view> fields, row;
                block.for_each([&](std::string_view line, std::int64_t i) {
                  split_fields(line, ",", fields);
                  check_num_fields(fields, kAvazuColumns.size(), block.place(i));
                  const Hour hour = parse_hour(fields[kHour], block.place(i));
                  row = {fields[kClick], kHours.at(hour.hour), kHours.at(hour.weekday)};
                  row.insert(row.end(), fields.begin() + kHour + 1, fields.end());
                  const bool is_test =
                      one_day ? block.first_row + i >= first_of_test : hour.day == days.last;
                  append_row(rows[is_test ? "test" : "train"], row);
                });
              });
}

}  // namespace satrap::prepare
