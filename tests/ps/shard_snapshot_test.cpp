#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include <sys/stat.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "tests/ps/shard_fixture.h"

namespace satrap::ps {
namespace {

class ShardSnapshot : public ShardTest {
 protected:
  std::string directory() {
    const std::string path = folder_.path() + "/checkpoint";
    ensure_directory(path);
    return path;
  }

  std::vector<table::RowFile> row_files(const std::vector<SnapshotFile>& files) {
    std::vector<table::RowFile> rows;
    for (const SnapshotFile& file : files) {
      rows.push_back(
          {directory() + "/" + file.name, file.table, file.row_bytes, file.bytes, file.xxh3});
    }
    return rows;
  }

  /// Weights and state of all rows in the files.
  Oracle::Rows rows_in(const std::vector<SnapshotFile>& files) {
    Oracle::Rows rows;
    for (const SnapshotFile& file : files) {
      const std::string bytes = read_file(directory() + "/" + file.name);
      EXPECT_EQ(std::ssize(bytes), file.bytes);
      EXPECT_EQ(file.bytes, file.rows * file.row_bytes);
      for (std::int64_t at = 0; at < file.bytes; at += file.row_bytes) {
        RowHeader header;
        std::memcpy(&header, bytes.data() + at, sizeof(header));
        std::vector<float> row(static_cast<std::size_t>(file.row_bytes - 16) / sizeof(float));
        std::memcpy(row.data(), bytes.data() + at + 16, row.size() * sizeof(float));
        EXPECT_TRUE(rows.emplace(header.key, row).second);
        EXPECT_EQ(static_cast<std::int32_t>(table_of(header.key)), file.table);
      }
    }
    return rows;
  }
};

TEST_F(ShardSnapshot, IsTheStateOfItsStepWhileStepsGoOnAndLoadsIntoAnyNumberOfShards) {
  constexpr std::int64_t kAt = 40, kEnd = 80;
  const Oracle oracle(tables_);
  Cluster cluster{.num_shards = 3, .num_workers = 2, .job = job_of(2, 2, true), .num_steps = kEnd};
  cluster.num_ids = 200;
  const std::vector<Oracle::Rows> versions = expected_rows(oracle, cluster);
  std::vector<SnapshotFile> files;
  {
    const auto servers = serve(3, {.num_workers = 2});
    auto clients = clients_of(cluster);
    // Rank 0 takes the snapshot after its push of step kAt, before any rank pushes a later one.
    std::atomic<std::int64_t> taken = 0;
    std::thread writer;
    const auto after_push = [&](std::int64_t rank, std::int64_t step) {
      if (step != kAt) return;
      if (rank == 0) {
        clients[0]->wait_applied(kAt);
        clients[0]->begin_snapshot(kAt);
        writer = std::thread([&] { files = clients[0]->write_snapshot(directory()); });
        taken = 1;
      }
      while (taken == 0) std::this_thread::yield();
    };
    std::thread other([&] {
      train(*clients[1], cluster, 1, {}, [&](std::int64_t step) { after_push(1, step); });
    });
    train(*clients[0], cluster, 0, {}, [&](std::int64_t step) { after_push(0, step); });
    other.join();
    writer.join();
    clients[0]->wait_applied(kEnd);
    expect_rows(*clients[0], oracle, versions.back(), cluster.num_ids);
  }
  ASSERT_EQ(files.size(), 9U);
  EXPECT_EQ(rows_in(files), versions[kAt]);

  for (const std::int64_t num_shards : {1, 2, 3, 5}) {
    const auto servers = serve(num_shards, {.num_workers = 2});
    Cluster next = cluster;
    next.num_shards = num_shards;
    next.job.session = 50;
    next.job.first_step = kAt + 1;
    next.job.row_files = row_files(files);
    auto clients = clients_of(next);
    expect_rows(*clients[0], oracle, versions[kAt], cluster.num_ids);
    // A trainer restores the lookups of the steps that had been read before the snapshot. Here the
    // ranks continue from what they read now, in sync mode.
  }
}

TEST_F(ShardSnapshot, AJobGoesOnFromItWithTheSameBits) {
  const Oracle oracle(tables_);
  Cluster cluster{.num_shards = 2, .num_workers = 2, .job = job_of(2, 0, true), .num_steps = 20};
  std::vector<SnapshotFile> files;
  {
    const auto servers = serve(2);
    auto clients = clients_of(cluster);
    train_all(clients, cluster);
    clients[0]->wait_applied(20);
    clients[0]->begin_snapshot(20);
    files = clients[0]->write_snapshot(directory());
  }
  cluster.num_shards = 3;
  cluster.num_steps = 40;
  const auto expected = expected_rows(oracle, cluster).back();
  cluster.job.session = 6;
  cluster.job.first_step = 21;
  cluster.job.row_files = row_files(files);
  const auto servers = serve(3, {.num_workers = 3});
  auto clients = clients_of(cluster);
  train_all(clients, cluster);
  clients[0]->wait_applied(40);
  expect_rows(*clients[0], oracle, expected, cluster.num_ids);
}

TEST_F(ShardSnapshot, ManyOneAfterTheOtherAlsoInAsyncMode) {
  for (const bool async : {false, true}) {
    const auto servers = serve(1, {.num_workers = 2});
    Cluster cluster{.job = job_of(1, 0, false), .num_steps = 10};
    cluster.job.async = async;
    const Oracle oracle(tables_);
    const auto versions = expected_rows(oracle, cluster);
    auto clients = clients_of(cluster);
    // Steps are read one after the other, so async with one rank equals sync.
    StepRows rows;
    for (std::int64_t step = 1; step <= 10; ++step) {
      const auto keys = keys_of_step(0, step, cluster.num_ids);
      clients[0]->pull(step, keys, rows);
      clients[0]->wait(rows);
      clients[0]->prepare_push(rows);
      for (std::size_t u = 0; u < keys.size(); ++u) {
        gradient_of(0, step, keys[u], rows.weights()[u], oracle.spec_of(keys[u]).dim,
                    rows.gradients()[u]);
      }
      clients[0]->push(step, rows, false);
      clients[0]->wait_pushed(rows);
      clients[0]->wait_applied(step);
      clients[0]->begin_snapshot(step);
      ASSERT_EQ(rows_in(clients[0]->write_snapshot(directory())),
                versions[static_cast<std::size_t>(step)]);
    }
  }
}

TEST_F(ShardSnapshot, AnErrorOfTheFileSystemIsTheAnswerAndTheNextOneWorks) {
  const auto servers = serve(1);
  Cluster cluster{.job = job_of(1, 0, false), .num_steps = 3};
  auto clients = clients_of(cluster);
  train(*clients[0], cluster, 0);
  clients[0]->wait_applied(3);
  EXPECT_THAT(message_of([&] { clients[0]->begin_snapshot(2); }),
              testing::HasSubstr("the rows are of step 3"));
  clients[0]->begin_snapshot(3);
  EXPECT_THAT(message_of([&] { clients[0]->write_snapshot("/nowhere/at/all"); }),
              testing::HasSubstr("/nowhere/at/all/table-0.shard-0.bin"));
  clients[0]->begin_snapshot(3);
  EXPECT_EQ(clients[0]->write_snapshot(directory()).size(), 3U);
}

// The first file is a pipe, so the shard cannot open it before somebody reads it.
TEST_F(ShardSnapshot, OneThatIsNotWrittenInTimeDelaysTheNextOneAndNoMore) {
  const Oracle oracle(tables_);
  const auto servers = serve(1);
  Cluster cluster{.job = job_of(1, 0, false), .num_steps = 3};
  auto clients = clients_of(cluster);
  train(*clients[0], cluster, 0);
  clients[0]->wait_applied(3);
  const auto impatient = client(0, 1, {.encoding = cluster.encoding, .timeout_ms = 1000});
  impatient->join(cluster.job.session);
  clients[0]->begin_snapshot(3);
  const std::string slow = folder_.path() + "/slow", pipe = slow + "/table-0.shard-0.bin";
  ensure_directory(slow);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto is_late =
      testing::AnyOf(testing::HasSubstr("imed out"), testing::HasSubstr("deadline passed"));
  EXPECT_THAT(message_of([&] { impatient->write_snapshot(slow); }), is_late);
  EXPECT_THAT(message_of([&] { impatient->begin_snapshot(3); }), is_late);

  std::thread reader([&] {
    std::ifstream file(pipe);
    file.ignore(std::numeric_limits<std::streamsize>::max());
  });
  const net::Deadline deadline = net::Deadline::after_ms(30'000);
  std::string failure = "not begun";
  while (!failure.empty() && !deadline.has_passed()) {
    failure = message_of([&] { clients[0]->begin_snapshot(3); });
  }
  reader.join();
  EXPECT_EQ(failure, "");
  EXPECT_EQ(rows_in(clients[0]->write_snapshot(directory())),
            expected_rows(oracle, cluster).back());
}

TEST_F(ShardSnapshot, DamagedFilesAreRefusedByName) {
  const auto servers = serve(1);
  Cluster cluster{.job = job_of(1, 0, false), .num_steps = 10};
  auto clients = clients_of(cluster);
  train(*clients[0], cluster, 0);
  clients[0]->wait_applied(10);
  clients[0]->begin_snapshot(10);
  const auto files = row_files(clients[0]->write_snapshot(directory()));
  std::uint64_t session = 10;
  const auto begin_with = [&](const std::function<void(table::RowFile&)>& change) {
    ShardJob job{.session = ++session};
    job.row_files = files;
    change(job.row_files[1]);
    return message_of([&] { clients[0]->begin(job); });
  };
  EXPECT_EQ(begin_with([](auto&) {}), "");
  EXPECT_THAT(begin_with([](auto& file) { file.xxh3 = "0123"; }),
              testing::HasSubstr("table-1.shard-0.bin: checksum does not match"));
  EXPECT_THAT(begin_with([](auto& file) { file.bytes += file.row_bytes; }),
              testing::HasSubstr("the manifest says"));
  EXPECT_THAT(begin_with([](auto& file) { file.row_bytes += 4; }),
              testing::HasSubstr("table 'site' has rows of"));
  EXPECT_THAT(begin_with([](auto& file) { file.path += "x"; }), testing::HasSubstr("binx"));
  EXPECT_THAT(message_of([&] { clients[0]->stats(); }),
              testing::HasSubstr("could not begin the job"));
  ShardJob twice{.session = 99, .row_files = {files[0], files[0]}};
  EXPECT_THAT(message_of([&] { clients[0]->begin(twice); }), testing::HasSubstr("two rows"));
  EXPECT_EQ(begin_with([](auto&) {}), "");
}

}  // namespace
}  // namespace satrap::ps
