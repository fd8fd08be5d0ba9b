// Loaders that say what they should not, and requests that loaders should refuse.
#include "src/loader/loader_wire.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/net/connection.h"
#include "satrap/net/net_error.h"
#include "satrap/net/server.h"
#include "tests/loader/loaders_fixture.h"

namespace satrap::loader {
namespace {

class LoaderWireTest : public LoadersTest {};

/// Answers kOpen by `opened`, and kNext by what `answer` returns, on the thread of the connection.
class FalseLoader {
 public:
  using Answer = std::function<std::vector<std::byte>()>;

  FalseLoader(
      const net::Endpoint& endpoint,
      net::Rendezvous& store,
      const Answer& answer,
      const Answer& opened = [] { return std::vector<std::byte>(); })
      : store_(store),
        number_(store.add(kCountKey, 1) - 1),
        server_(endpoint,
                store,
                server_name(number_),
                {.max_in_flight = kMaxInFlight + 1},
                [this, answer, opened](std::unique_ptr<net::ServerCall>& call) {
                  if (call->op() == kOpen) ++num_opened_;
                  call->reply(call->op() == kOpen ? opened() : answer());
                }) {
    store.set(entry_key(number_), server_.address());
  }
  ~FalseLoader() { store_.erase(entry_key(number_)); }
  FalseLoader(const FalseLoader&) = delete;
  FalseLoader& operator=(const FalseLoader&) = delete;

  int num_opened() const { return num_opened_; }

 private:
  net::Rendezvous& store_;
  const std::int64_t number_;
  std::atomic<int> num_opened_{0};
  const net::Server server_;
};

std::vector<std::byte> bytes_of(const data::RowDelivery& delivery) {
  std::vector<std::byte> bytes(1, static_cast<std::byte>(AnswerKind::kDelivery));
  data::append(delivery, bytes);
  return bytes;
}

TEST_F(LoaderWireTest, ALoaderThatTalksNonsenseIsLeft) {
  const Run expected = read({});
  data::RowDelivery delivery;
  delivery.end_row = 0;  // says nothing
  delivery.rows.clear(1, 1);
  const std::vector<std::byte> twice = bytes_of(delivery);
  std::vector<std::byte> truncated(twice.begin(), twice.end() - 1);
  delivery.rows.num_rows = 2;
  delivery.rows.first_row = INT64_MAX;
  delivery.rows.labels = {0.0F, 1.0F};
  delivery.rows.numeric[0] = {2.0F, 3.0F};
  delivery.rows.bags[0] = {.offsets = {0, 1, 2}, .ids = {4, 5}, .weights = {}};
  const std::vector<std::byte> unnumbered = bytes_of(delivery);
  for (const std::vector<std::byte>& answer :
       {std::vector<std::byte>(), std::vector<std::byte>(1, std::byte{9}), truncated, twice,
        unnumbered}) {
    loaders_.clear();
    const FalseLoader nonsense(loader_end_, *store_, [&] { return answer; });
    start_loaders(1);
    EXPECT_EQ(read(by_loaders()), expected) << answer.size() << " bytes";
  }
}

/// Two rows of a topic's partition 1, from offset 3 on, whose first row has been read.
data::RowDelivery two_rows() {
  data::RowDelivery delivery;
  delivery.end_row = 42;
  delivery.pieces = {
      {.first_row = 40, .partition = 1, .begin = 3, .end = 5, .skip = 1, .num_rows = 2}};
  return delivery;
}

TEST_F(LoaderWireTest, PiecesOfATopicThatDoNotFollowAreRefused) {
  data::TopicPosition place;
  place.row = 40;
  place.partitions = {{.first = 0, .next = 7, .end = 7}, {.first = 0, .next = 3, .skip = 1}};
  data::DataConfig config = config_;
  config.train.path = {"kafka://nowhere:1/clicks"};
  const data::Dataset data = data::Dataset(config).starting_at(place);
  const auto take = [&](const data::RowDelivery& sent) {
    const FalseLoader loader(loader_end_, *store_, [&] { return bytes_of(sent); });
    data::RowDelivery delivery;
    const auto deliveries = rank_side(/*timeout_ms=*/1).opener()(data, {.first_row = 40});
    return deliveries->next(delivery) && delivery.end_row == 42;
  };
  EXPECT_TRUE(take(two_rows()));
  using Change = std::function<void(data::RowDelivery&)>;
  const std::vector<Change> changes = {
      [](data::RowDelivery& sent) { sent.pieces.clear(); },
      [](data::RowDelivery& sent) { sent.pieces[0].epoch = 1; },
      [](data::RowDelivery& sent) { sent.pieces[0].first_row = 41; },
      [](data::RowDelivery& sent) { sent.pieces[0].partition = 0; },
      [](data::RowDelivery& sent) { sent.pieces[0].partition = 2; },
      [](data::RowDelivery& sent) { sent.pieces[0].begin = 4; },
      [](data::RowDelivery& sent) { sent.pieces[0].end = 3; },
      [](data::RowDelivery& sent) { sent.pieces[0].skip = 0; },
      [](data::RowDelivery& sent) { sent.pieces[0].num_rows = INT64_MAX; },
      [](data::RowDelivery& sent) { sent.pieces.push_back(sent.pieces[0]); },
      [](data::RowDelivery& sent) { sent.end_row = 39; },
      [](data::RowDelivery& sent) { sent.end_row = INT64_MAX; },
      [](data::RowDelivery& sent) { sent.is_end = true; },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    data::RowDelivery sent = two_rows();
    changes[i](sent);
    EXPECT_THROW(take(sent), Error) << "change " << i;
  }
}

TEST_F(LoaderWireTest, ADeadLoaderDoesNotInterruptTheOthers) {
  data::RowDelivery sent;
  std::int64_t end_row = 0;
  const FalseLoader loader(loader_end_, *store_, [&] {
    sent.end_row = ++end_row;
    return bytes_of(sent);
  });
  const auto deliveries =
      rank_side(kTimeoutMs, /*look_every_ms=*/0).opener()(data::Dataset(config_), {});
  data::RowDelivery delivery;
  ASSERT_TRUE(deliveries->next(delivery));
  leave_dead_entry();
  for (std::int64_t row = 2; row < 50; ++row) {
    ASSERT_TRUE(deliveries->next(delivery));
    EXPECT_EQ(delivery.end_row, row);
  }
  EXPECT_EQ(loader.num_opened(), 1);
}

TEST_F(LoaderWireTest, ALoaderThatHasComeIsUsed) {
  start_loaders(1);
  const Run expected = read({});
  data::ReadOptions options{.prefetch_batches = 1};
  options.open_deliveries = rank_side(kTimeoutMs, /*look_every_ms=*/0).opener();
  std::unique_ptr<FalseLoader> newcomer;
  const Run run = read(options, [&](std::size_t batches) {
    if (batches != 20) return;
    newcomer = std::make_unique<FalseLoader>(loader_end_, *store_,
                                             [] { return std::vector<std::byte>(); });
  });
  EXPECT_EQ(run, expected);
  EXPECT_GE(newcomer->num_opened(), 1);  // and left, for its nonsense
}

TEST_F(LoaderWireTest, RowsMayTakeLongerThanTheWaitForALoader) {
  data::RowDelivery end;
  end.is_end = true;
  const FalseLoader slow(loader_end_, *store_, [&] {
    const auto late = net::Deadline::after_ms(20);  // the wait for a loader is over
    while (!late.has_passed()) std::this_thread::yield();
    return bytes_of(end);
  });
  const auto deliveries = rank_side(/*timeout_ms=*/1).opener()(data::Dataset(config_), {});
  data::RowDelivery delivery;
  EXPECT_TRUE(deliveries->next(delivery));
  EXPECT_TRUE(delivery.is_end);
  EXPECT_EQ(slow.num_opened(), 1);
}

TEST_F(LoaderWireTest, OneThatCannotOpenAPassIsLeftToTheOthers) {
  const FalseLoader full(
      loader_end_, *store_, [] { return std::vector<std::byte>(); },
      []() -> std::vector<std::byte> { throw Error(ErrorCode::kUnavailable, "no threads"); });
  start_loaders(1);
  const Run expected = read({});
  EXPECT_EQ(read(by_loaders()), expected);
  EXPECT_GE(full.num_opened(), 1);
}

TEST_F(LoaderWireTest, OneOfAnotherVersionEndsTheRun) {
  const FalseLoader old(
      loader_end_, *store_, [] { return std::vector<std::byte>(); },
      [] { return error_bytes(ErrorCode::kInvalidConfig, "the rank speaks version 2"); });
  start_loaders(1);
  try {
    read(by_loaders());
    FAIL() << "read by a loader of another version";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
    EXPECT_STREQ(
        error.what(),
        "loader/0: the rank speaks version 2; loaders must be of the version of the ranks");
  }
}

TEST_F(LoaderWireTest, ARequestOfAStrangerIsRefused) {
  start_loaders(1);
  const net::Endpoint client(with_token());
  const auto call = [&](net::Op op, const std::string& text) {
    net::Connection connection(client, *store_, server_name(0), "test",
                               net::Deadline::after_ms(kTimeoutMs));
    const net::RequestBuffer request(client, {std::as_bytes(std::span(text))});
    net::Ticket ticket =
        connection.call_for_any_size(op, request, net::Deadline::after_ms(kTimeoutMs));
    const std::span<const std::byte> answer = ticket.wait();
    if (!answer.empty()) throw_error(answer, "the loader");
  };
  const auto code_of = [&](const std::string& text) {
    try {
      call(kOpen, text);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kInternal;
  };
  constexpr std::size_t kNumber = sizeof(std::int64_t);
  const std::string good = to_bytes({.config = config_, .num_ranks = 1, .pass = {}});
  EXPECT_NO_THROW(call(kOpen, good));
  for (std::size_t size = 0; size < 11 * kNumber; size += 5) {
    EXPECT_THROW(call(kOpen, good.substr(0, size)), net::NetError) << size;
  }
  EXPECT_THROW(call(kOpen, good.substr(0, kNumber) + std::string(10 * kNumber, '\xff')),
               net::NetError);
  EXPECT_EQ(code_of(good + "\nnonsense: 1\n"), ErrorCode::kInvalidConfig);
  EXPECT_EQ(code_of(std::string(kNumber, '\1') + good.substr(kNumber)),  // another protocol
            ErrorCode::kInvalidConfig);
  EXPECT_THROW(call(kNext, ""), net::NetError);
  EXPECT_THROW(call(77, ""), net::NetError);
}

}  // namespace
}  // namespace satrap::loader
