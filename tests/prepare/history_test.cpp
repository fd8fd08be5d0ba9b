#include "src/prepare/history.h"

#include <string>

#include <gtest/gtest.h>

namespace satrap::prepare {
namespace {

std::string before(History& history, std::int64_t user, std::int64_t time) {
  std::string row;
  history.append_before(user, time, row);
  return row;
}

TEST(History, BeginsEmpty) {
  History history(2, 1);
  EXPECT_EQ(before(history, 0, 5), "\t");
}

TEST(History, EventsOfTheSameMomentAreNotBefore) {
  History history(3, 2);
  history.add(7, 1, {"a", "b"});
  history.add(7, 2, {"c", ""});
  EXPECT_EQ(before(history, 7, 2), "\ta\tb");
  EXPECT_EQ(before(history, 7, 3), "\ta|c\tb|0");
}

TEST(History, TheLastEventsAreKept) {
  History history(2, 1);
  for (int time = 0; time < 5; ++time) history.add(7, time, {std::to_string(time)});
  EXPECT_EQ(before(history, 7, 4), "\t2|3");
  EXPECT_EQ(before(history, 7, 9), "\t3|4");
}

TEST(History, AnotherUserHasHisOwn) {
  History history(2, 1);
  history.add(7, 1, {"a"});
  EXPECT_EQ(before(history, 8, 9), "\t");
  history.add(9, 1, {"b"});
  EXPECT_EQ(before(history, 9, 9), "\tb");
}

}  // namespace
}  // namespace satrap::prepare
