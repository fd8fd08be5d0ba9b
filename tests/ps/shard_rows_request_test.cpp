// A shard's answers to requests for whole rows that its own client would never send, and to
// repeated ones.

#include "tests/ps/shard_rows_fixture.h"

namespace satrap::ps {
namespace {

class RowRequests : public ShardRequests {
 protected:
  static Bytes put_prefix(std::size_t num_keys) {
    Bytes bytes = prefix();
    reinterpret_cast<RequestPrefix*>(bytes.data())->num_keys = static_cast<std::uint32_t>(num_keys);
    return bytes;
  }

  Bytes rows_of(const std::vector<Key>& keys, std::uint64_t version = 1) const {
    Bytes bytes;
    for (const Row& row : some_rows(tables_, keys, version)) bytes = bytes + row;
    return bytes;
  }

  Bytes put_of(const std::vector<Key>& keys, std::uint64_t version = 1) const {
    return put_prefix(keys.size()) + bytes_of(keys) + rows_of(keys, version);
  }

  Bytes fetched(const std::vector<Key>& keys) {
    const Answer answer = ask(ShardOp::kFetch, 0, prefix() + bytes_of(keys));
    EXPECT_EQ(answer.error, "");
    EXPECT_GE(answer.bytes.size(), sizeof(ReplyPrefix));
    return {answer.bytes.begin() + sizeof(ReplyPrefix), answer.bytes.end()};
  }
};

TEST_F(RowRequests, AreRefusedByWhatIsWrongWithThemAndChangeNothing) {
  const std::vector<Key> keys = own_keys(10);
  const Bytes good = bytes_of(keys), rows = rows_of(keys);
  std::vector<Key> twice = keys;
  twice[1] = twice[0];
  const std::string none = concat("put of ", keys.size() + 1, " keys in ", good.size(), " bytes");
  using enum ShardOp;
  EXPECT_THAT(error_of(kFetch, 0, {}), has("a request of 0 bytes"));
  EXPECT_THAT(error_of(kFetch, 0, prefix() + Bytes(7)),
              has("7 bytes are not a whole number of keys"));
  EXPECT_THAT(error_of(kFetch, 0, prefix() + bytes_of(twice)), has("do not ascend"));
  EXPECT_THAT(error_of(kFetch, 0, prefix() + bytes_of(all_keys(10))), has("is of shard 1, this"));
  EXPECT_THAT(error_of(kFetch, 0, prefix(0, 4)), has("another start of the job"));
  EXPECT_THAT(error_of(kPut, 0, put_of(keys)), has("put of step 0, allowed: 1 to 4294967295"));
  EXPECT_THAT(error_of(kPut, -1, put_of(keys)), has("put of step -1"));
  EXPECT_THAT(error_of(kPut, kMaxStep + 1, put_of(keys)), has("put of step 4294967296"));
  EXPECT_THAT(error_of(kPut, 1, put_of(keys), 1), has("rank 1 of a job of 1"));
  EXPECT_THAT(error_of(kPut, 1, {}), has("a request of 0 bytes"));
  EXPECT_THAT(error_of(kPut, 1, put_prefix(1)), has("put of 1 keys in 0 bytes"));
  EXPECT_THAT(error_of(kPut, 1, put_prefix(keys.size() + 1) + good), has(none));
  EXPECT_THAT(error_of(kPut, 1, put_prefix(0xFFFFFFFF) + good), has("put of 4294967295 keys"));
  EXPECT_THAT(error_of(kPut, 1, put_prefix(0) + Bytes(4)),
              has("put: 4 bytes of rows for 0 keys, expected 0"));
  for (const int difference : {-28, -1, 1, 28}) {
    Bytes wrong = put_of(keys);
    wrong.resize(wrong.size() + static_cast<std::size_t>(difference));
    EXPECT_THAT(error_of(kPut, 1, wrong),
                has(concat("put: ", std::ssize(rows) + difference, " bytes of rows for ",
                           keys.size(), " keys, expected ", rows.size())));
  }
  EXPECT_THAT(error_of(kPut, 1, put_prefix(keys.size()) + bytes_of(twice) + rows),
              has("do not ascend"));
  EXPECT_THAT(error_of(kPut, 1, put_prefix(1) + bytes_of(std::vector{make_key(TableId{3}, 1)})),
              has("there are 3"));
  // Only the last row belongs to another shard: the ones before it are not written either.
  Bytes wrong = put_of(keys);
  const std::size_t last = wrong.size() - some_row(tables_, keys.back(), 1).size();
  const Key other = make_key(TableId{1}, 5);
  std::memcpy(wrong.data() + last, &other, sizeof(other));
  EXPECT_THAT(error_of(kPut, 1, wrong), has(concat("the row of id ", id_of(keys.back()))));
  EXPECT_THAT(error_of(kPut, 1, wrong), has("has the header of id 5 of table 1"));
  EXPECT_EQ(parse_stats(ask(kStats, 0, prefix()).bytes).rows, 0);

  // And a fetch whose buffer is smaller than its answer.
  std::vector<std::byte> little(64);
  net::CallOptions options;
  options.tag = {.client = 1, .sequence = ++sequence_, .step = 1, .rank = 0};
  EXPECT_THAT(message_of([&] {
                raw_->call(op_of(kFetch), {client_end_, {prefix() + good}}, little,
                           net::Deadline::after_ms(30'000), options)
                    .wait();
              }),
              has("the client has room for 64"));
  expect_training_works();
}

TEST_F(RowRequests, WithoutKeysAreAnswered) {
  EXPECT_TRUE(fetched({}).empty());
  EXPECT_EQ(error_of(ShardOp::kPut, 1, put_of({})), "");
}

TEST_F(RowRequests, ARepeatedPutIsAppliedOnce) {
  const std::vector<Key> keys = own_keys(10);
  const auto put = [&](std::uint64_t client, std::uint64_t sequence, std::uint64_t version) {
    auto connection = connect();
    net::CallOptions options;
    options.tag = {.client = client, .sequence = sequence, .step = 2, .rank = 0};
    return message_of([&] {
      connection
          ->call(op_of(ShardOp::kPut), {client_end_, {put_of(keys, version)}},
                 std::span<std::byte>(), net::Deadline::after_ms(30'000), options)
          .wait();
    });
  };
  const auto content = [&] {
    std::vector<float> floats;
    const Bytes bytes = fetched(keys);
    std::size_t at = 0;
    for (const Key key : keys) {
      const std::size_t size = some_row(tables_, key, 0).size();
      const Row row(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                    bytes.begin() + static_cast<std::ptrdiff_t>(at + size));
      const std::vector<float> more = floats_in(row);
      floats.insert(floats.end(), more.begin(), more.end());
      at += size;
    }
    return floats;
  };
  const auto content_of = [&](std::uint64_t version) {
    std::vector<float> floats;
    for (const Row& row : some_rows(tables_, keys, version)) {
      const std::vector<float> more = floats_in(row);
      floats.insert(floats.end(), more.begin(), more.end());
    }
    return floats;
  };
  EXPECT_EQ(put(3, 4, 1), "");
  EXPECT_EQ(put(3, 9, 2), "");
  // Requests of closed connections: the last one, and the one before.
  EXPECT_EQ(put(3, 9, 2), "");
  EXPECT_EQ(put(3, 4, 1), "");
  EXPECT_EQ(content(), content_of(2));
  EXPECT_EQ(parse_stats(ask(ShardOp::kStats, 0, prefix()).bytes).repeated_requests, 2);
  // Another client of the rank has its own count.
  EXPECT_EQ(put(5, 1, 3), "");
  EXPECT_EQ(put(3, 9, 2), "");
  EXPECT_EQ(content(), content_of(3));
  EXPECT_THAT(put(0, 1, 4), has("a put without a number"));
}

}  // namespace
}  // namespace satrap::ps
