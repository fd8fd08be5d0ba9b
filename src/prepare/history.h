#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace satrap::prepare {

/// The events of one user before some moment: the last events, each with the same columns. Users
/// come one after the other, and the events of a user in the order of time.
class History {
 public:
  History(std::size_t max_events, std::size_t num_columns)
      : max_events_(max_events), num_columns_(num_columns) {}

  /// Not before an earlier event or moment of the user. Another user than before forgets that one.
  void add(std::int64_t user, std::int64_t time, const std::vector<std::string_view>& columns);

  /// Appends a tab and the events strictly before `time`, the oldest first, '|' between them, for
  /// each column. Later calls have the same time or a later one. An empty value is written as 0.
  void append_before(std::int64_t user, std::int64_t time, std::string& row);

 private:
  struct Event {
    std::int64_t time;
    std::vector<std::string> columns;
  };
  void begin(std::int64_t user);
  void settle(std::int64_t time);

  const std::size_t max_events_, num_columns_;
  std::int64_t user_ = 0;
  bool has_user_ = false;
  std::deque<Event> before_;   // at most max_events_
  std::deque<Event> pending_;  // the latest, all of one time
};

}  // namespace satrap::prepare
