#include "src/prepare/history.h"

#include <utility>

namespace satrap::prepare {

void History::begin(std::int64_t user) {
  if (has_user_ && user == user_) return;
  has_user_ = true;
  user_ = user;
  before_.clear();
  pending_.clear();
}

void History::add(std::int64_t user,
                  std::int64_t time,
                  const std::vector<std::string_view>& columns) {
  begin(user);
  settle(time);
  pending_.push_back({time, {columns.begin(), columns.end()}});
}

/// Events before `time` are before any later moment too.
void History::settle(std::int64_t time) {
  while (!pending_.empty() && pending_.front().time < time) {
    before_.push_back(std::move(pending_.front()));
    pending_.pop_front();
    if (before_.size() > max_events_) before_.pop_front();
  }
}

void History::append_before(std::int64_t user, std::int64_t time, std::string& row) {
  begin(user);
  settle(time);
  for (std::size_t column = 0; column < num_columns_; ++column) {
    row.push_back('\t');
    for (std::size_t i = 0; i < before_.size(); ++i) {
      if (i > 0) row.push_back('|');
      const std::string& value = before_[i].columns[column];
      row.append(value.empty() ? "0" : value);
    }
  }
}

}  // namespace satrap::prepare
