// A shard's answers to requests that its own client would never send, and to repeated ones.

#include <random>

#include "tests/ps/shard_request_fixture.h"

namespace satrap::ps {
namespace {

TEST_F(ShardRequests, AreRefusedByWhatIsWrongWithThem) {
  const std::vector<Key> keys = own_keys(10);
  const Bytes good = bytes_of(keys);
  std::vector<Key> twice = keys, descending = keys, foreign = all_keys(10);
  twice[1] = twice[0];
  std::swap(descending[0], descending[1]);
  using enum ShardOp;
  EXPECT_THAT(error_of(kPull, 1, {}), has("a request of 0 bytes"));
  EXPECT_THAT(error_of(kPull, 1, prefix(0, 4)), has("another start of the job"));
  EXPECT_THAT(error_of(kPull, 1, prefix(), 1), has("rank 1 of a job of 1"));
  EXPECT_THAT(error_of(kPull, 1, prefix(), -1), has("rank -1"));
  EXPECT_THAT(error_of(kPull, 1, prefix(0, kSession, static_cast<FloatType>(9))),
              has("unknown encoding 9"));
  EXPECT_THAT(error_of(kPull, 1, prefix() + Bytes(7)), has("not a whole number of keys"));
  EXPECT_THAT(error_of(kPull, 1, prefix() + bytes_of(twice)), has("do not ascend"));
  EXPECT_THAT(error_of(kPull, 1, prefix() + bytes_of(descending)), has("do not ascend"));
  EXPECT_THAT(error_of(kPull, 1, prefix() + bytes_of(foreign)), has("is of shard 1, this is"));
  EXPECT_THAT(error_of(kPull, 1, prefix() + bytes_of(std::vector{make_key(TableId{3}, 1)})),
              has("a key of table 3, there are 3"));
  EXPECT_THAT(error_of(kPull, 2, prefix() + good), has("expected step 1"));
  Bytes from_the_future = prefix();
  constexpr std::int64_t kOne = 1;
  std::memcpy(from_the_future.data() + offsetof(RequestPrefix, least_version), &kOne, sizeof(kOne));
  EXPECT_THAT(error_of(kPull, 1, from_the_future + good), has("waits for the update of step 1"));
  EXPECT_THAT(error_of(kPull, -1, prefix() + good), has("which is over"));
  EXPECT_THAT(error_of(kPull, 0, prefix() + good), has("which is over"));
  EXPECT_THAT(error_of(kPush, 1, prefix()), has("whose pull has not been answered"));
  EXPECT_THAT(error_of(kPush, 0, prefix()), has("expected step 1"));
  EXPECT_THAT(error_of(kPush, 7, prefix()), has("expected step 1"));
  EXPECT_THAT(error_of(static_cast<ShardOp>(99), 1, prefix()), has("unknown operation 99"));
  EXPECT_THAT(error_of(kLookup, 0, prefix() + bytes_of(twice)), has("do not ascend"));
  EXPECT_THAT(error_of(kWriteSnapshot, 0, prefix()), has("no snapshot has begun"));
  EXPECT_THAT(error_of(kBeginSnapshot, 3, prefix()), has("the rows are of step 0"));
  EXPECT_THAT(error_of(kBegin, 0, bytes_of_text("{")), has("not a begin message"));
  EXPECT_THAT(error_of(kBegin, 0, bytes_of_text("[1]")), has("not a begin message"));
  EXPECT_THAT(error_of(kJoin, 0, bytes_of_text("{\"session\": \"x\"}")), has("not a join"));
  EXPECT_THAT(error_of(kJoin, 0, bytes_of_text("{\"session\": 1e300}")), has("not a join"));
  const auto lines = describe_tables(tables_, kSeed, 2);
  const auto begin_with = [&](const std::function<void(ShardJob&)>& change) {
    ShardJob job{.session = 900};
    change(job);
    return error_of(kBegin, 0, bytes_of_text(to_json(BeginMessage{job, lines})));
  };
  EXPECT_THAT(begin_with([](ShardJob& job) { job.num_ranks = 0; }), has("0 ranks"));
  EXPECT_THAT(begin_with([](ShardJob& job) { job.num_ranks = 1 << 30; }), has("ranks, allowed"));
  EXPECT_THAT(begin_with([](ShardJob& job) { job.staleness = (1 << 20) + 1; }),
              has("staleness 1048577"));
  for (const auto& [good_text, bad_text] :
       {std::pair{"\"staleness\":0", "\"staleness\":-1"},
        std::pair{"\"staleness_factor\":0.0", "\"staleness_factor\":1.5"}}) {
    std::string text = to_json(BeginMessage{ShardJob{.session = 900}, lines});
    ASSERT_NE(text.find(good_text), std::string::npos) << text;
    text.replace(text.find(good_text), std::string(good_text).size(), bad_text);
    EXPECT_THAT(error_of(kBegin, 0, bytes_of_text(text)), has("is not a bound"));
  }
  EXPECT_THAT(begin_with([](ShardJob& job) { job.first_step = 0; }), has("first step 0"));
  EXPECT_THAT(begin_with([](ShardJob& job) { job.session = 0; }), has("session 0"));
  EXPECT_THAT(begin_with([](ShardJob& job) { job.async = job.deterministic = true; }),
              has("never deterministic"));
  EXPECT_THAT(begin_with([](ShardJob& job) {
                job.num_ranks = 1 << 14;
                job.staleness = 1 << 20;
              }),
              has("open steps of 16384 ranks with staleness 1048576"));
  EXPECT_THAT(begin_with([](ShardJob& job) { job.row_files = {{.path = "x", .table = 3}}; }),
              has("of table 3, there are 3"));
  for (const std::int64_t parts : {std::int64_t{0}, std::int64_t{1} << 62}) {
    EXPECT_THAT(
        begin_with([&](ShardJob& job) { job.row_files = {{.path = "x", .num_parts = parts}}; }),
        has("x: part 0 of " + std::to_string(parts)));
  }
  EXPECT_THAT(begin_with([](ShardJob& job) { job.session = kSession; }), has("a second begin"));

  // And a pull whose buffer is smaller than its answer.
  std::vector<std::byte> little(64);
  net::CallOptions options;
  options.tag = {.client = 1, .sequence = ++sequence_, .step = 1, .rank = 0};
  EXPECT_THAT(message_of([&] {
                raw_->call(op_of(kPull), {client_end_, {prefix() + good}}, little,
                           net::Deadline::after_ms(30'000), options)
                    .wait();
              }),
              has("the client has room for 64"));
  expect_training_works();
}

TEST_F(ShardRequests, AnAsyncJobIsRefusedWhereTablesHaveLimits) {
  clients_.clear();
  raw_.reset();
  servers_.clear();
  tables_[0].limits.capacity_rows = 100;
  servers_ = serve(2, {.num_workers = 2});
  raw_ = connect();
  ShardJob job{.session = 900};
  job.async = true;
  const auto begin = [&] {
    const auto lines = describe_tables(tables_, kSeed, 2);
    return error_of(ShardOp::kBegin, 0, bytes_of_text(to_json(BeginMessage{job, lines})));
  };
  EXPECT_THAT(begin(), has("tables with limits need steps in their order"));
  job.async = false;
  EXPECT_EQ(begin(), "");
}

TEST_F(ShardRequests, APushOfTheWrongSizeIsRefusedAndTheRightOneTaken) {
  const std::vector<Key> keys = own_keys(10);
  const auto values = static_cast<std::size_t>(num_values(keys));
  ASSERT_EQ(ask(ShardOp::kPull, 1, prefix() + bytes_of(keys)).error, "");
  for (const std::size_t size : {std::size_t{0}, values - 1, values + 1}) {
    EXPECT_THAT(error_of(ShardOp::kPush, 1, prefix() + bytes_of(std::vector<float>(size))),
                has("bytes of gradients for"));
  }
  EXPECT_THAT(error_of(ShardOp::kPush, 1, prefix(kSkip) + Bytes(4)), has("expected 0"));
  EXPECT_EQ(error_of(ShardOp::kPush, 1, prefix() + bytes_of(std::vector<float>(values))), "");
}

TEST_F(ShardRequests, StepsBeyondWhatARankMayHaveOpenAreRefused) {
  // No bound delays pulls: only the shard's own limit does.
  ShardJob job{.session = 6};
  job.async = true;
  clients_[0]->begin(job);
  std::int64_t step = 1;
  Answer answer;
  while ((answer = ask(ShardOp::kPull, step, prefix(0, 6))).error.empty()) ASSERT_LT(step++, 1000);
  EXPECT_THAT(answer.error, has("64 steps are open already"));
  EXPECT_EQ(step, 65);
  for (std::int64_t push = 1; push < step; ++push) {
    ASSERT_EQ(error_of(ShardOp::kPush, push, prefix(kSkip, 6)), "");
  }
  ASSERT_EQ(error_of(ShardOp::kWaitApplied, step - 1, prefix(0, 6)), "");
  EXPECT_EQ(error_of(ShardOp::kPull, step, prefix(0, 6)), "");
}

TEST_F(ShardRequests, ARepeatedPullGetsTheSameBytesInDeterministicMode) {
  const std::vector<Key> keys = own_keys(10);
  const Bytes pull = prefix() + bytes_of(keys);
  const Bytes gradients =
      bytes_of(std::vector<float>(static_cast<std::size_t>(num_values(keys)), 1));
  ASSERT_EQ(ask(ShardOp::kPull, 1, pull).error, "");
  const Answer first = ask(ShardOp::kPull, 2, pull);
  ASSERT_EQ(ask(ShardOp::kPush, 1, prefix() + gradients).error, "");
  // The rows change once all pulls that read them before have been answered, and this one has been.
  ASSERT_EQ(ask(ShardOp::kWaitApplied, 1, prefix()).error, "");
  const Answer again = ask(*connect(), ShardOp::kPull, 2, pull);
  EXPECT_EQ(again.error, "");
  EXPECT_EQ(again.bytes, first.bytes);
  EXPECT_NE(ask(ShardOp::kLookup, 0, pull).bytes, first.bytes);
  EXPECT_THAT(error_of(ShardOp::kPull, 2, prefix()), has("of other keys"));
  ASSERT_EQ(ask(ShardOp::kPush, 2, prefix() + gradients).error, "");
  EXPECT_THAT(error_of(ShardOp::kPull, 2, pull), has("whose gradients have arrived"));
}

TEST_F(ShardRequests, ARepeatedPullThatWaitsIsAnsweredOnTheNewConnection) {
  ShardJob job = job_of(1, 0, false);
  job.session = 8;
  clients_[0]->begin(job);
  const Bytes pull = prefix(0, 8) + bytes_of(own_keys(10));
  ASSERT_EQ(ask(ShardOp::kPull, 1, pull).error, "");
  auto old = connect(), fresh = connect();
  const auto call = [&](net::Connection& connection) {
    net::CallOptions options;
    options.tag = {.client = 1, .sequence = 1000, .step = 2, .rank = 0};
    return connection.call_for_any_size(op_of(ShardOp::kPull), {client_end_, {pull}},
                                        net::Deadline::after_ms(30'000), options);
  };
  net::Ticket lost = call(*old);
  net::Ticket repeated = call(*fresh);
  old->close("lost");
  ASSERT_EQ(ask(ShardOp::kPush, 1, prefix(kSkip, 8)).error, "");
  EXPECT_GT(repeated.wait().size(), sizeof(ReplyPrefix));
  EXPECT_THROW(lost.wait(), net::NetError);
}

TEST_F(ShardRequests, ARepeatedPushIsAppliedOnce) {
  const std::vector<Key> keys = own_keys(10);
  const auto values = static_cast<std::size_t>(num_values(keys));
  ASSERT_EQ(ask(ShardOp::kPull, 1, prefix() + bytes_of(keys)).error, "");
  ASSERT_EQ(ask(ShardOp::kEndPulls, 1, prefix()).error, "");
  const Bytes push = prefix() + bytes_of(std::vector<float>(values, 1.0F));
  for (int i = 0; i < 3; ++i) ASSERT_EQ(ask(*connect(), ShardOp::kPush, 1, push).error, "");
  ASSERT_EQ(ask(ShardOp::kWaitApplied, 1, prefix()).error, "");
  const Answer once = ask(ShardOp::kLookup, 0, prefix() + bytes_of(keys));
  for (int i = 0; i < 3; ++i) ASSERT_EQ(ask(*connect(), ShardOp::kPush, 1, push).error, "");
  EXPECT_EQ(ask(ShardOp::kLookup, 0, prefix() + bytes_of(keys)).bytes, once.bytes);
  EXPECT_GE(parse_stats(ask(ShardOp::kStats, 0, prefix()).bytes).repeated_requests, 5);

  const Oracle oracle(tables_);
  Oracle::Rows expected;
  Oracle::Sums sums;
  for (const Key key : keys) {
    oracle.add(sums, key, std::vector<float>(static_cast<std::size_t>(oracle.spec_of(key).dim), 1));
  }
  oracle.apply(expected, sums, 1);
  std::vector<float> weights;
  for (const Key key : keys) {
    const auto row = oracle.weights(expected, key);
    weights.insert(weights.end(), row.begin(), row.end());
  }
  EXPECT_EQ(Bytes(once.bytes.begin() + sizeof(ReplyPrefix), once.bytes.end()), bytes_of(weights));
}

TEST_F(ShardRequests, GarbageLeavesTheShardServing) {
  std::mt19937_64 random(20);
  std::int64_t num_refused = 0, num_taken = 0;
  for (int i = 0; i < 3000; ++i) {
    // A request that could be right, with some bytes changed, cut or added. The rank is one of the
    // job only if the request is harmless; the session usually is the job's.
    Bytes payload = prefix(static_cast<std::uint32_t>(random() % 3), random() % 8 ? kSession : 1) +
                    bytes_of(own_keys(random() % 5));
    if (random() % 4 == 0) payload = bytes_of_text(to_json(BeginMessage{{.session = 3}, {}}));
    for (std::uint64_t changes = random() % 4; changes > 0 && !payload.empty(); --changes) {
      payload[random() % payload.size()] = static_cast<std::byte>(random());
    }
    if (random() % 4 == 0) payload.resize(random() % (payload.size() + 1));
    if (random() % 8 == 0) payload.resize(payload.size() + random() % 100'000);
    const auto op = static_cast<ShardOp>(random() % 16);
    const auto step = static_cast<std::int64_t>(random() % 8 ? random() % 4 : random());
    // Lookups and statistics change nothing, so the rank may be one of the job.
    const bool is_harmless = op == ShardOp::kLookup || op == ShardOp::kStats;
    const std::int32_t rank = is_harmless ? 0 : static_cast<std::int32_t>(random() % 100) + 1;
    ++(ask(op, step, payload, rank).error.empty() ? num_taken : num_refused);
  }
  EXPECT_GT(num_refused, 2000);
  EXPECT_GT(num_taken, 20);
  expect_training_works();
}

}  // namespace
}  // namespace satrap::ps
