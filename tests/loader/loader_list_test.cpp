#include "src/loader/loader_list.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/net/file_rendezvous.h"
#include "src/loader/loader_wire.h"
#include "tests/support/temporary_directory.h"

namespace satrap::loader {
namespace {

using std::chrono::seconds;
using Numbers = std::vector<std::int64_t>;

/// Counts what is asked of the store behind it.
class CountingStore : public net::PrefixRendezvous {
 public:
  explicit CountingStore(std::shared_ptr<net::Rendezvous> store)
      : PrefixRendezvous("", std::move(store)) {}
  std::optional<std::string> get(const std::string& key) override {
    ++num_gets;
    return PrefixRendezvous::get(key);
  }

  int num_gets = 0;
};

class LoaderListTest : public testing::Test {
 protected:
  void enter(std::int64_t number) { store_->set(entry_key(number), "127.0.0.1 1"); }

  Numbers find_after(seconds since) {
    Numbers numbers;
    for (const LoaderEntry& entry : list_.find(start_ + since)) {
      EXPECT_EQ(entry.address, "127.0.0.1 1");
      numbers.push_back(entry.number);
    }
    return numbers;
  }

  const TemporaryDirectory folder_;
  const std::shared_ptr<CountingStore> store_ = std::make_shared<CountingStore>(
      std::make_shared<net::FileRendezvous>(folder_.path() + "/store"));
  const LoaderList::Clock::time_point start_ = LoaderList::Clock::now();
  LoaderList list_{store_};
};

TEST_F(LoaderListTest, OfNoneIsEmpty) { EXPECT_EQ(find_after(seconds(0)), Numbers()); }

TEST_F(LoaderListTest, ALostOneRestsTwiceAsLongEachTime) {
  store_->add(kCountKey, 2);
  enter(0);
  enter(1);
  EXPECT_EQ(find_after(seconds(0)), Numbers({0, 1}));
  std::int64_t lost_at = 0;
  for (const std::int64_t rest : {60, 120, 240, 480, 960, 1920, 3600, 3600}) {
    list_.lose(0, start_ + seconds(lost_at));
    EXPECT_EQ(find_after(seconds(lost_at + rest - 1)), Numbers({1}));
    EXPECT_EQ(find_after(seconds(lost_at + rest)), Numbers({0, 1}));
    lost_at += rest;
  }
  list_.lose(0, start_ + seconds(lost_at));
  list_.forget_losses();
  EXPECT_EQ(find_after(seconds(lost_at)), Numbers({0, 1}));
}

TEST_F(LoaderListTest, EndedOnesAreAskedForAtEverLongerIntervals) {
  store_->add(kCountKey, 100);
  enter(99);
  for (std::int64_t second = 0; second < 64; ++second) {
    EXPECT_EQ(find_after(seconds(second)), Numbers({99}));
  }
  EXPECT_EQ(store_->num_gets, 2 * 64 + 99 * 7);  // after 0, 1, 3, 7, 15, 31 and 63 seconds
}

TEST_F(LoaderListTest, OneThatEntersItselfLateIsFound) {
  store_->add(kCountKey, 1);
  EXPECT_EQ(find_after(seconds(0)), Numbers());
  enter(0);
  EXPECT_EQ(find_after(seconds(1)), Numbers({0}));
}

}  // namespace
}  // namespace satrap::loader
