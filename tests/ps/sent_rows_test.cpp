#include "src/ps/sent_rows.h"

#include <map>
#include <random>

#include <gtest/gtest.h>

namespace satrap::ps {
namespace {

Key key(std::uint64_t id) { return make_key(TableId{1}, id); }

TEST(SentRows, TellWhatWasNotedLastOrNothing) {
  SentRows rows;
  EXPECT_EQ(rows.version(key(0)), -1);
  rows.make_room(100);
  std::map<std::uint64_t, std::int64_t> noted;
  std::mt19937_64 random(5);
  std::int64_t known = 0;
  for (std::int64_t version = 0; version < 2000; ++version) {
    const std::uint64_t id = random() % 300;
    rows.note(key(id), version);
    noted[id] = version;
    EXPECT_EQ(rows.version(key(id)), version);
    const std::uint64_t other = random() % 300;
    const std::int64_t found = rows.version(key(other));
    if (found < 0) continue;
    ++known;
    EXPECT_EQ(found, noted.at(other));
  }
  EXPECT_GT(known, 500);
}

TEST(SentRows, ForgetAllWhereTheyGrowAndOnlyThere) {
  SentRows rows;
  rows.make_room(10);
  rows.note(key(3), 7);
  rows.make_room(5);
  rows.make_room(16);
  EXPECT_EQ(rows.version(key(3)), 7);
  rows.make_room(17);
  EXPECT_EQ(rows.version(key(3)), -1);
}

}  // namespace
}  // namespace satrap::ps
