#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/text.h"
#include "satrap/data/open_rows.h"
#include "satrap/loader/loader_server.h"
#include "satrap/loader/loaders.h"
#include "satrap/net/file_rendezvous.h"
#include "src/loader/loader_wire.h"
#include "tests/support/temporary_directory.h"

namespace satrap::loader {

inline constexpr std::int64_t kTimeoutMs = 120'000;

inline net::EndpointOptions with_token(const std::string& token = "secret") {
  return {.token = token};
}

/// All that a run sees of a batch, as text.
inline std::string text_of(const data::Batch& batch) {
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
  LoadersTest() : store_(std::make_shared<net::FileRendezvous>(folder_.path() + "/store")) {
    config_.format = data::DataFormat::kCsv;
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
    return data::open_batches(data::Dataset(config_), data::fixed_transforms(schema),
                              data::Role::kTrain, options);
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
  std::shared_ptr<net::FileRendezvous> store_;
  data::DataConfig config_;
  net::Endpoint loader_end_{with_token()};
  std::vector<std::unique_ptr<LoaderServer>> loaders_;
  std::unique_ptr<Loaders> rank_side_;
};

}  // namespace satrap::loader
