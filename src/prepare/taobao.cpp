#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "satrap/core/error.h"
#include "satrap/core/json.h"
#include "src/prepare/data_set.h"
#include "src/prepare/fields.h"
#include "src/prepare/file_lines.h"
#include "src/prepare/history.h"
#include "src/prepare/parts.h"
#include "src/prepare/sorted_lines.h"

namespace satrap::prepare {
namespace {

constexpr std::int64_t kTaobaoLines = 8192;
constexpr std::size_t kActionsOfHistory = 50;
constexpr std::int64_t kSecondsPerDay = 86400;
constexpr std::int64_t kBeijing = 28'800;  // seconds: the log's days are those of UTC+8

constexpr std::array<std::string_view, 8> kProfile = {
    "cms_segid",    "cms_group_id",   "final_gender_code", "age_level",
    "pvalue_level", "shopping_level", "occupation",        "new_user_class_level"};
constexpr std::array<std::string_view, 5> kAd = {"cate_id", "campaign_id", "customer", "brand",
                                                 "price"};
constexpr std::array<std::string_view, 3> kImpression = {"clk", "adgroup_id", "pid"};
constexpr std::array<std::string_view, 3> kAction = {"btag", "cate", "brand"};

std::int64_t day_of(std::int64_t time) { return (time + kBeijing) / kSecondsPerDay; }

/// Calls body(fields, place) for each row of a file with a header.
template <class Body>
void for_each_row(Workspace& workspace,
                  const std::string& path,
                  const Header& header,
                  std::string_view what,
                  Body&& body) {
  FileLines source({path}, 1);
  LineBlock block;
  std::vector<std::string_view> fields;
  while (source.next(block, kTaobaoLines)) {
    block.for_each([&](std::string_view line, std::int64_t i) {
      split_fields(line, ",", fields);
      check_num_fields(fields, header.size(), block.place(i));
      body(fields, block.place(i));
    });
    workspace.show(what, source, block.first_row);
  }
}

/// Some columns of a file by the integer in another one, each with a tab before it.
class Lookup {
 public:
  Lookup(Workspace& workspace,
         const std::string& path,
         std::string_view key,
         std::span<const std::string_view> columns)
      : missing_(columns.size(), '\t') {
    const Header header(path, ",");
    const std::size_t key_at = header.at(key);
    std::vector<std::size_t> at;
    for (const std::string_view column : columns) at.push_back(header.at(column));
    for_each_row(workspace, path, header, concat("reading ", key),
                 [&](const std::vector<std::string_view>& fields, const std::string& place) {
                   std::string& text = texts_[integer_field(fields[key_at], key, place)];
                   text.clear();
                   for (const std::size_t i : at) {
                     text.push_back('\t');
                     if (fields[i] != "NULL") text.append(fields[i]);
                   }
                 });
  }

  const std::string& operator[](std::int64_t key) const {
    const auto found = texts_.find(key);
    return found == texts_.end() ? missing_ : found->second;
  }

 private:
  std::unordered_map<std::int64_t, std::string> texts_;
  const std::string missing_;
};

/// Positions of columns in a header.
template <std::size_t n>
std::array<std::size_t, n> positions(const Header& header,
                                     const std::array<std::string_view, n>& columns) {
  std::array<std::size_t, n> at;
  std::ranges::transform(columns, at.begin(), [&](auto column) { return header.at(column); });
  return at;
}

/// Sorts some columns of a file by user and time; returns the last time.
template <std::size_t n>
std::int64_t sort_by_user_and_time(Workspace& workspace,
                                   LineSorter& sorter,
                                   const std::string& path,
                                   const std::array<std::string_view, n>& columns) {
  const Header header(path, ",");
  const auto at = positions(header, columns);
  const std::size_t user = header.at("user"), time = header.at("time_stamp");
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  std::string text;
  for_each_row(workspace, path, header, "sorting by user",
               [&](const std::vector<std::string_view>& fields, const std::string& place) {
                 const SortKey key{.first = integer_field(fields[user], "user", place),
                                   .second = integer_field(fields[time], "time_stamp", place)};
                 text.clear();
                 for (const std::size_t i : at) text.append(fields[i]).push_back('\t');
                 text.pop_back();
                 sorter.add(key, text);
                 last = std::max(last, key.second);
               });
  return last;
}

/// Actions of the users of impressions, up to each impression.
class ActionsBefore {
 public:
  explicit ActionsBefore(const LineSorter& sorter)
      : lines_(sorter), history_(kActionsOfHistory, kAction.size()) {
    has_next_ = lines_.next(key_, text_);
  }

  /// Moments come in the order of (user, time).
  void append(const SortKey& moment, std::string& row) {
    std::vector<std::string_view> columns;
    while (has_next_ && key_ < moment) {
      if (key_.first == moment.first) {
        split_fields(text_, "\t", columns);
        history_.add(key_.first, key_.second, columns);
      }
      has_next_ = lines_.next(key_, text_);
    }
    history_.append_before(moment.first, moment.second, row);
  }

 private:
  SortedLines lines_;
  History history_;
  SortKey key_;
  std::string_view text_;
  bool has_next_ = false;
};

/// Rows of the schema, sorted by time: click, hour, user and profile, ad and its columns, pid, and
/// three sequences.
void join(const LineSorter& impressions,
          const LineSorter& actions,
          const Lookup& profiles,
          const Lookup& ads,
          LineSorter& rows) {
  ActionsBefore before(actions);
  SortedLines lines(impressions);
  SortKey moment;
  std::string_view text;
  std::vector<std::string_view> fields;
  std::string row;
  constexpr std::int64_t kSecondsPerHour = 3600;
  while (lines.next(moment, text)) {
    split_fields(text, "\t", fields);
    const std::int64_t hour = (moment.second + kBeijing) % kSecondsPerDay / kSecondsPerHour;
    const std::int64_t ad = integer_field(fields[1], "adgroup_id", "raw_sample");
    row = concat(fields[0], "\t", hour, "\t", moment.first, profiles[moment.first], "\t", ad,
                 ads[ad], "\t", fields[2]);
    before.append(moment, row);
    rows.add({.first = moment.second, .second = moment.first}, row);
  }
  rows.finish();
}

}  // namespace

void prepare_taobao(Workspace& workspace, const std::vector<std::string>& paths) {
  LineSorter rows(workspace, "rows"), impressions(workspace, "impressions");
  if (!rows.is_finished()) {
    LineSorter actions(workspace, "actions");
    if (!impressions.is_finished()) {
      impressions.finish(
          {{"last_time", sort_by_user_and_time(workspace, impressions, paths[0], kImpression)}});
    }
    if (!actions.is_finished()) {
      sort_by_user_and_time(workspace, actions, paths[3], kAction);
      actions.finish();
    }
    const Lookup ads(workspace, paths[1], "adgroup_id", kAd);
    const Lookup profiles(workspace, paths[2], "userid", kProfile);
    join(impressions, actions, profiles, ads, rows);
  }
  const std::int64_t last_day = day_of(integer_at(impressions.found(), "last_time"));
  SortedSource source(rows);
  write_parts(workspace, source,
              [&](const LineBlock& block, std::map<std::string, std::string>& texts) {
                block.for_each([&](std::string_view line, std::int64_t i) {
                  const std::size_t tab = line.find('\t');
                  const std::int64_t time =
                      integer_field(line.substr(0, tab), "time_stamp", block.place(i));
                  texts[day_of(time) == last_day ? "test" : "train"]
                      .append(line.substr(tab + 1))
                      .push_back('\n');
                });
              });
}

}  // namespace satrap::prepare
