// Rows that a stream is still copying when they are added.
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "src/embedding/write_back.h"
#include "tests/embedding/gated_row_store.h"
#include "tests/support/device/device.h"

namespace satrap::embedding {
namespace {

using satrap::testing::device;

Key key_of(std::uint64_t id) { return make_key(TableId{0}, id); }

std::vector<std::byte> row_of(Key key, std::int64_t value) {
  std::vector<std::byte> row(static_cast<std::size_t>(SmallRowStore::kRowBytes));
  SmallRowStore::write(key, value, row.data());
  return row;
}

TEST(WriteBackOfADevice, FindsAndPutsRowsOnceTheyHaveArrived) {
  if (const auto readiness = satrap::testing::device_readiness(); !readiness.reason.empty()) {
    GTEST_SKIP() << readiness.reason;
  }
  satrap::testing::for_each_schedule([] {
    SmallRowStore store;
    GatedRowStore gate{store};
    WriteBack write_back(gate, 1 << 20);
    const backend::Stream stream(device());
    std::deque<satrap::testing::DeviceArray<std::byte>> cache;
    const auto add = [&](Key key, std::int64_t value) {
      const auto& on_device = cache.emplace_back(row_of(key, value));
      std::unique_ptr<WriteBack::Rows> rows = write_back.take_free();
      rows->begin(device(), 1, SmallRowStore::kRowBytes);
      device().copy(rows->data(), on_device.data(), SmallRowStore::kRowBytes, stream);
      rows->arrive_with(device(), stream);
      rows->add_key(key);
      write_back.add(std::move(rows), 1);
    };
    gate.close(StoreCall::kPut);
    add(key_of(1), 10);
    gate.wait_for_waiting(StoreCall::kPut, 1);  // the thread looks at no other rows meanwhile
    add(key_of(2), 20);
    std::vector<std::byte> row(static_cast<std::size_t>(SmallRowStore::kRowBytes));
    std::byte* const place = row.data();
    const Key key = key_of(2);
    std::vector<bool> found;
    write_back.find({&key, 1}, {&place, 1}, found);
    EXPECT_TRUE(found.front());
    EXPECT_EQ(SmallRowStore::value_of(place), 20);
    gate.open(StoreCall::kPut);
    write_back.wait_until_empty();
    EXPECT_EQ(store.value(key_of(1)), 10);
    EXPECT_EQ(store.value(key_of(2)), 20);
  });
}

}  // namespace
}  // namespace satrap::embedding
