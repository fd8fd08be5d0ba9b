#include "satrap/loader/loaders.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/resource.h"
#include "satrap/core/text.h"
#include "satrap/data/loader.h"
#include "satrap/loader/loader_server.h"
#include "satrap/net/connection.h"
#include "satrap/net/file_store.h"
#include "satrap/net/net_error.h"
#include "satrap/net/server.h"
#include "src/loader/loader_wire.h"
#include "tests/support/temporary_directory.h"

namespace satrap::loader {
namespace {

constexpr std::int64_t kTimeoutMs = 120'000;

net::EndpointOptions with_token(const std::string& token = "secret") { return {.token = token}; }

/// All that a run sees of a batch, as text.
std::string text_of(const data::Batch& batch) {
  std::string text;
  for (const float label : batch.labels) text += concat(label, " ");
  for (const float number : batch.numeric) text += concat(number, " ");
  for (const std::int64_t offset : batch.offsets) text += concat(offset, " ");
  for (const std::uint64_t id : batch.ids) text += concat(id, " ");
  return text;
}

/// A file with rows, some of which are bad, and loaders for it: threads of this process.
class LoadersTest : public testing::Test {
 protected:
  LoadersTest() : store_(std::make_shared<net::FileStore>(folder_.path() + "/store")) {
    config_.format = "csv";
    config_.schema.numeric.emplace_back().name = "n";
    config_.schema.features.emplace_back().name = "c";
    config_.batch_size = 7;
    config_.train.path = {folder_.path() + "/a.csv", folder_.path() + "/b.csv"};
    write(config_.train.path[0], 2000, 1);
    write(config_.train.path[1], 1511, 2);
  }

  static void write(const std::string& path, int num_rows, unsigned seed) {
    std::mt19937 random(seed);
    std::ofstream out(path);
    out << "label,n,c\n";
    for (int row = 0; row < num_rows; ++row) {
      if (random() % 10 == 0) {
        out << (random() % 2 == 0 ? "\n" : "1,wrong,x\n");
      } else {
        out << random() % 2 << ',' << random() % 100 << ",id" << random() % 50 << '\n';
      }
    }
  }

  std::unique_ptr<LoaderServer> start_loader() {
    return std::make_unique<LoaderServer>(loader_end_, store_, LoaderServerOptions{2});
  }
  void start_loaders(int count) {
    for (int i = 0; i < count; ++i) loaders_.push_back(start_loader());
  }

  Loaders& rank_side(std::int64_t timeout_ms = kTimeoutMs, std::int64_t look_every_ms = 2000) {
    rank_side_ = std::make_unique<Loaders>(with_token(), store_, "rank 0",
                                           LoadersOptions{.timeout_ms = timeout_ms,
                                                          .connect_ms = kTimeoutMs,
                                                          .look_every_ms = look_every_ms,
                                                          .rows_per_turn = 16});
    return *rank_side_;
  }

  /// Leaves the entry of a loader that was killed, and returns its address.
  std::string leave_dead_entry() {
    std::unique_ptr<LoaderServer> loader = start_loader();
    const std::int64_t number = loader->number();
    const std::string address = loader->address();
    loader.reset();
    store_->set(entry_key(number), address);
    return address;
  }

  std::unique_ptr<data::BatchSource> open(data::ReadOptions options) {
    const data::Schema schema = data::resolve_schema(config_);
    return data::open_batches(config_, schema, data::fixed_transforms(schema), data::Role::kTrain,
                              options);
  }

  struct Run {
    std::vector<std::string> batches;
    std::vector<data::DataPosition> positions;
    std::map<std::string, std::int64_t> bad_row_reasons;
    std::vector<data::DataFile> files;
    friend bool operator==(const Run&, const Run&) = default;
  };

  /// `between`, if given, is called after each batch with their number.
  Run read(const data::ReadOptions& options, const std::function<void(std::size_t)>& between = {}) {
    const auto source = open(options);
    Run run;
    data::Batch batch;
    while (source->next(batch)) {
      run.batches.push_back(text_of(batch));
      run.positions.push_back(source->position());
      if (between) between(run.batches.size());
    }
    run.bad_row_reasons = source->bad_row_reasons();
    run.files = source->files();
    return run;
  }

  data::ReadOptions by_loaders(data::ReadOptions options = {}) {
    options.open_deliveries = rank_side().opener();
    return options;
  }

  TemporaryDirectory folder_;
  std::shared_ptr<net::FileStore> store_;
  data::DataConfig config_;
  net::Endpoint loader_end_{with_token()};
  std::vector<std::unique_ptr<LoaderServer>> loaders_;
  std::unique_ptr<Loaders> rank_side_;
};

TEST_F(LoadersTest, AnyNumberOfThemGivesTheRowsOfLocalReading) {
  const Run expected = read({.epochs = 2});
  ASSERT_GT(expected.batches.size(), 100U);
  ASSERT_GT(expected.bad_row_reasons.size(), 0U);
  for (int count = 1; count <= 5; ++count) {
    start_loaders(1);
    EXPECT_EQ(read(by_loaders({.epochs = 2})), expected) << count << " loaders";
  }
}

TEST_F(LoadersTest, ShuffledRowsAndAPartForEvaluationAreThoseOfLocalReading) {
  start_loaders(3);
  config_.shuffle_rows = 50;
  for (const char* by : {"hash", "tail", "c"}) {
    config_.eval.fraction = 0.3;
    config_.eval.by = by;
    Run expected = read({.seed = 5}), run = read(by_loaders({.seed = 5}));
    // Where the last row is, is known before the last file has been read to its end.
    expected.files.back().num_rows = run.files.back().num_rows = -1;
    EXPECT_EQ(run, expected) << by;
  }
}

TEST_F(LoadersTest, RanksGetTheirRows) {
  start_loaders(2);
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    const data::ReadOptions options{.rank = rank, .world_size = 3, .batch_size = 5};
    const Run expected = read(options);
    EXPECT_EQ(read(by_loaders(options)), expected) << "rank " << rank;
  }
}

TEST_F(LoadersTest, ReadingContinuesAtEveryPosition) {
  start_loaders(2);
  const Run expected = read({});
  for (std::size_t begin = 0; begin < expected.positions.size(); begin += 50) {
    const Run rest = read(by_loaders({.start = expected.positions[begin]}));
    EXPECT_EQ(rest.batches, std::vector(expected.batches.begin() + static_cast<int>(begin) + 1,
                                        expected.batches.end()))
        << "after batch " << begin;
  }
}

TEST_F(LoadersTest, RowsOfALostLoaderAreReadByOthers) {
  const Run expected = read({.epochs = 2, .prefetch_batches = 1});
  for (const std::size_t when : {1U, 20U, 77U}) {
    loaders_.clear();
    start_loaders(3);
    const Run run =
        read(by_loaders({.epochs = 2, .prefetch_batches = 1}), [&](std::size_t batches) {
          if (batches == when) loaders_[when % 3].reset();
        });
    EXPECT_EQ(run, expected) << "after batch " << when;
  }
}

TEST_F(LoadersTest, TheLastLoaderIsWaitedFor) {
  const Run expected = read({.epochs = 2, .prefetch_batches = 1});
  start_loaders(1);
  const Run run = read(by_loaders({.epochs = 2, .prefetch_batches = 1}), [&](std::size_t batches) {
    if (batches != 30) return;
    loaders_.clear();
    start_loaders(1);
  });
  EXPECT_EQ(run, expected);
}

TEST_F(LoadersTest, NoLoaderWithinTheTimeoutIsAnError) {
  const std::string dead = leave_dead_entry();
  try {
    read([&] {
      data::ReadOptions options;
      options.open_deliveries = rank_side(/*timeout_ms=*/50).opener();
      return options;
    }());
    FAIL() << "read without a loader";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_NE(std::string(error.what()).find("no loader could be used"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("satrap loader"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find(concat("loader 0 at ", dead)), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("refused"), std::string::npos) << error.what();
  }
}

TEST_F(LoadersTest, AnErrorOfTheLoadersReaderIsTheRanks) {
  start_loaders(2);
  config_.on_bad_row = "stop";
  EXPECT_THROW(read(by_loaders()), Error);
  config_.on_bad_row = "skip";
  std::ofstream(config_.train.path[1]) << "other,columns\n1,2\n";
  const auto source = open(by_loaders());
  data::Batch batch;
  try {
    while (source->next(batch)) {
    }
    FAIL() << "read a file without the columns";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("loader/"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("b.csv"), std::string::npos) << error.what();
  }
}

TEST_F(LoadersTest, ClosingEndsAWaitForALoader) {
  const auto source = open(by_loaders());
  source->close();
  data::Batch batch;
  EXPECT_FALSE(source->next(batch));
}

TEST_F(LoadersTest, ALoaderWithAnotherTokenIsNotUsed) {
  net::Endpoint strange(with_token("another"));
  const LoaderServer stranger(strange, store_, {});
  start_loaders(1);
  const Run expected = read({});
  EXPECT_EQ(read(by_loaders()), expected);
}

/// Answers kOpen by `opened`, and kNext by what `answer` returns, on the thread of the connection.
class FalseLoader {
 public:
  using Answer = std::function<std::vector<std::byte>()>;

  FalseLoader(
      const net::Endpoint& endpoint,
      net::Store& store,
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
  net::Store& store_;
  const std::int64_t number_;
  std::atomic<int> num_opened_{0};
  const net::Server server_;
};

std::vector<std::byte> bytes_of(const data::RowDelivery& delivery) {
  std::vector<std::byte> bytes(1, static_cast<std::byte>(AnswerKind::kDelivery));
  data::append(delivery, bytes);
  return bytes;
}

TEST_F(LoadersTest, ALoaderThatTalksNonsenseIsLeft) {
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

TEST_F(LoadersTest, ADeadLoaderDoesNotInterruptTheOthers) {
  data::RowDelivery sent;
  std::int64_t end_row = 0;
  const FalseLoader loader(loader_end_, *store_, [&] {
    sent.end_row = ++end_row;
    return bytes_of(sent);
  });
  const auto deliveries = rank_side(kTimeoutMs, /*look_every_ms=*/0).opener()(config_, {});
  data::RowDelivery delivery;
  ASSERT_TRUE(deliveries->next(delivery));
  leave_dead_entry();
  for (std::int64_t row = 2; row < 50; ++row) {
    ASSERT_TRUE(deliveries->next(delivery));
    EXPECT_EQ(delivery.end_row, row);
  }
  EXPECT_EQ(loader.num_opened(), 1);
}

TEST_F(LoadersTest, ALoaderThatHasComeIsUsed) {
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

TEST_F(LoadersTest, RowsMayTakeLongerThanTheWaitForALoader) {
  data::RowDelivery end;
  end.is_end = true;
  const FalseLoader slow(loader_end_, *store_, [&] {
    const auto late = net::Deadline::after_ms(20);  // the wait for a loader is over
    while (!late.has_passed()) std::this_thread::yield();
    return bytes_of(end);
  });
  const auto deliveries = rank_side(/*timeout_ms=*/1).opener()(config_, {});
  data::RowDelivery delivery;
  EXPECT_TRUE(deliveries->next(delivery));
  EXPECT_TRUE(delivery.is_end);
  EXPECT_EQ(slow.num_opened(), 1);
}

TEST_F(LoadersTest, OneThatCannotOpenAPassIsLeftToTheOthers) {
  const FalseLoader full(
      loader_end_, *store_, [] { return std::vector<std::byte>(); },
      []() -> std::vector<std::byte> { throw Error(ErrorCode::kUnavailable, "no threads"); });
  start_loaders(1);
  const Run expected = read({});
  EXPECT_EQ(read(by_loaders()), expected);
  EXPECT_GE(full.num_opened(), 1);
}

TEST_F(LoadersTest, OneOfAnotherVersionEndsTheRun) {
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

TEST(LoaderServerOptions, TheCpusAreDividedAmongTheRanks) {
  EXPECT_EQ(LoaderServerOptions{}.threads_for(1), num_cpus());
  EXPECT_EQ(LoaderServerOptions{}.threads_for(num_cpus()), 1);
  EXPECT_EQ(LoaderServerOptions{}.threads_for(2 * num_cpus()), 1);
  EXPECT_EQ(LoaderServerOptions{.num_threads = 3}.threads_for(2 * num_cpus()), 3);
}

TEST_F(LoadersTest, ARequestOfAStrangerIsRefused) {
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
  const std::string good = to_bytes({config_, {}});
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

TEST_F(LoadersTest, APassOfAFileThatIsNotThereIsItsError) {
  start_loaders(1);
  std::filesystem::copy(config_.train.path[0], folder_.path() + "/c.csv");
  config_.train.path = {folder_.path() + "/c.csv"};
  data::ReadOptions options = by_loaders({.prefetch_batches = 1});
  const auto opened = options.open_deliveries;
  options.open_deliveries = [&](const data::DataConfig& config, const data::RowPass& pass) {
    std::filesystem::remove(config.train.path[0]);
    return opened(config, pass);
  };
  EXPECT_THROW(read(options), Error);
}

}  // namespace
}  // namespace satrap::loader
