#include "satrap/checkpoint/checkpoint_reader.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/checkpoint/checkpoint.h"
#include "tests/checkpoint/small_checkpoint.h"
#include "tests/checkpoint/small_model.h"
#include "tests/support/temporary_directory.h"

namespace satrap::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class CheckpointReader : public testing::Test {
 protected:
  std::string published(std::int64_t step) {
    return publish(directory_.path(), small_content(step));
  }

  /// The whole of a file, as read_checked returns it.
  static std::string checked(const std::string& checkpoint, const std::string& name) {
    std::string text;
    read_checked(checkpoint, name, Manifest::read(checkpoint), [&](auto bytes) {
      text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    });
    return text;
  }
  static std::string corruption(const std::string& checkpoint, const std::string& name) {
    return error_of(ErrorCode::kCorrupt, [&] { checked(checkpoint, name); });
  }
  static std::string verify_error(const std::string& checkpoint) {
    return error_of(ErrorCode::kCorrupt, [&] { verify_checkpoint(checkpoint); });
  }

  const TemporaryDirectory directory_;
};

TEST_F(CheckpointReader, HandsOutWholeFilesOfAnySize) {
  const std::string at = published(5);
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{(2 << 20) + 5}}) {
    rewrite(at, "transforms.json", std::string(size, 'x'));
    EXPECT_EQ(checked(at, "transforms.json").size(), size);
    EXPECT_EQ(read_transforms(at), std::string(size, 'x'));
  }
}

TEST_F(CheckpointReader, NamesAFileThatIsNotWhatTheManifestSays) {
  const std::string at = published(5);
  const std::string file = at + "/dense.bin";
  EXPECT_EQ(corruption(at, "other.bin"), at + "/other.bin: not in the manifest");
  flip_a_bit(file);
  EXPECT_EQ(corruption(at, "dense.bin"), file + ": checksum does not match its content");
  fs::resize_file(file, 20);
  EXPECT_EQ(corruption(at, "dense.bin"), file + ": 20 bytes, the manifest says 24");
  fs::remove(file);
  EXPECT_EQ(corruption(at, "dense.bin"), file + ": missing");
}

TEST_F(CheckpointReader, RowsComeInWholeRows) {
  const std::string at = published(5);
  std::vector<SmallRow> rows(40'000);  // more than a block
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].id = i;
  std::string text;
  for (const SmallRow& row : rows) text += row.bytes();
  rewrite(at, "table-0.bin", text);
  std::string read;
  std::int64_t blocks = 0;
  read_rows(at, "table-0.bin", Manifest::read(at), kSmallRowBytes, [&](auto bytes) {
    EXPECT_EQ(bytes.size() % kSmallRowBytes, 0U);
    read.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    ++blocks;
  });
  EXPECT_EQ(read, text);
  EXPECT_GT(blocks, 1);
}

TEST_F(CheckpointReader, TheDenseTensorsAreAllThatTheManifestDescribes) {
  const std::string at = published(5);
  EXPECT_THAT(read_dense(at, Manifest::read(at)), ElementsAre(1, 2, 3, 4, 5, 6));
  const std::string whole = read_file(at + "/manifest.json");
  edit_manifest(at, [](Manifest& manifest) { manifest.dense.pop_back(); });
  EXPECT_EQ(error_of(ErrorCode::kCorrupt, [&] { read_dense(at, Manifest::read(at)); }),
            at + "/manifest.json: dense.bin has 24 bytes, its tensors 16");
  write_file_atomic(at + "/manifest.json", whole);
  edit_manifest(at, [](Manifest& manifest) { manifest.dense[0].shape = {std::int64_t{1} << 46}; });
  EXPECT_EQ(error_of(ErrorCode::kCorrupt, [&] { read_dense(at, Manifest::read(at)); }),
            at + "/manifest.json: dense.bin has 24 bytes, its tensors 281474976710664");
}

TEST_F(CheckpointReader, FindsTheConfigurationIfThereIsOne) {
  const std::string at = published(5);
  EXPECT_EQ(find_config(at), at + "/config.yaml");
  EXPECT_EQ(read_file(find_config(at)), dump_config(small_job()));
  flip_a_bit(at + "/config.yaml");
  EXPECT_THAT(error_of(ErrorCode::kCorrupt, [&] { find_config(at); }), HasSubstr("config.yaml"));
  edit_manifest(at, [](Manifest& manifest) { manifest.files.erase(kConfigFile); });
  EXPECT_EQ(find_config(at), "");
}

TEST_F(CheckpointReader, RowFilesOfShardsKnowTheirPart) {
  const std::string at = reshard_checkpoint(published(5), 2, directory_.path() + "/divided");
  const Manifest manifest = Manifest::read(at);
  const std::vector<table::RowFile> files = row_files(at, manifest, manifest.tables[0], 3);
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[1].path, at + "/table-0.shard-1.bin");
  EXPECT_EQ(files[1].table, 3);
  EXPECT_EQ(files[1].part, 1);
  EXPECT_EQ(files[1].num_parts, 2);
  EXPECT_EQ(files[1].row_bytes, 32);
  EXPECT_EQ(files[0].bytes + files[1].bytes, 64);
  EXPECT_FALSE(files[1].is_packed);
  EXPECT_FALSE(files[1].weights_only);
}

TEST_F(CheckpointReader, RowFilesOfOneProcessAreWhole) {
  const std::string at = published(5);
  Manifest manifest = Manifest::read(at);
  const std::vector<table::RowFile> files = row_files(at, manifest, manifest.tables[0], 0);
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].part, 0);
  EXPECT_EQ(files[0].num_parts, 1);
  manifest.files.clear();
  EXPECT_EQ(error_of(ErrorCode::kCorrupt, [&] { row_files(at, manifest, manifest.tables[0], 0); }),
            at + "/table-0.bin: not in the manifest");
}

TEST_F(CheckpointReader, TheDigestIsOfTheContentAlone) {
  const auto digest = [&](const std::string& name, std::unique_ptr<CheckpointContent> content) {
    return verify_checkpoint(publish(directory_.path() + "/" + name, std::move(content)));
  };
  const std::string one = digest("one", small_content(5, {{7, 0.5F}, {8, 1.5F}}));
  EXPECT_EQ(digest("other-order", small_content(5, {{8, 1.5F}, {7, 0.5F}})), one);
  auto content = small_content(5);
  content->config_yaml += "# a comment\n";
  content->metrics.clear();
  EXPECT_EQ(digest("other-configuration", std::move(content)), one);
  EXPECT_NE(digest("other-step", small_content(6)), one);
  EXPECT_NE(digest("other-weight", small_content(5, {{7, 0.5F}, {8, 1.25F}})), one);
  EXPECT_NE(digest("swapped-weights", small_content(5, {{7, 1.5F}, {8, 0.5F}})), one);
  EXPECT_NE(digest("a-row-twice", small_content(5, {{7, 0.5F}, {8, 1.5F}, {8, 1.5F}})), one);
  content = small_content(5);
  content->dense[1].values[0] = 5.5F;
  EXPECT_NE(digest("other-network", std::move(content)), one);
  content = small_content(5);
  content->transforms_json = "{ }";
  EXPECT_NE(digest("other-transforms", std::move(content)), one);
}

TEST_F(CheckpointReader, ADamagedOneComesWithTheNewestOlderOneThatIsIntact) {
  const std::string first = published(4), second = published(5), third = published(6),
                    last = published(7);
  flip_a_bit(third + "/dense.bin");
  EXPECT_THAT(verify_error(third),
              AllOf(HasSubstr(third + "/dense.bin: checksum"),
                    HasSubstr("the previous checkpoint is " + second), Not(HasSubstr(last))));
  flip_a_bit(second + "/table-0.bin");
  EXPECT_THAT(verify_error(third), HasSubstr("the previous checkpoint is " + first));
  EXPECT_THAT(verify_error(third + "/"), HasSubstr("the previous checkpoint is " + first));
  fs::remove(first + "/manifest.json");
  EXPECT_THAT(verify_error(third), HasSubstr("there is no older one that is intact"));
  EXPECT_THAT(verify_error(first), HasSubstr("there is no older one that is intact"));
}

/// A checkpoint of the small job with rows and rank 0's lookups ahead.
class CheckpointOfAModel : public CheckpointReader {
 protected:
  CheckpointOfAModel() {
    SmallModel small;
    auto content = small.content(5);
    content->rows = std::make_unique<SmallSnapshot>(std::vector<SmallRow>{{7, 0.5F}, {8, 1.5F}});
    content->pending = {{.step = 6, .read_version = 4, .pooled = {1, 2}, .mask = {}},
                        {.step = 7, .read_version = 5, .pooled = {}, .mask = {3}}};
    at_ = publish(directory_.path(), std::move(content));
  }
  std::string load_error(const job::JobConfig& config, ErrorCode code) const {
    SmallModel small(config);
    return error_of(code, [&] { load_checkpoint(at_, small.model()); });
  }

  std::string at_;
};

TEST_F(CheckpointOfAModel, LoadsWithTheSameContent) {
  SmallModel small;
  const RestoredState state = load_checkpoint(at_, small.model());
  EXPECT_EQ(state.manifest.step, 5);
  EXPECT_EQ(small.model().tables->size().rows, 2);
  auto content = small.content(5);
  content->pending = state.pending;
  EXPECT_EQ(verify_checkpoint(publish(directory_.path() + "/again", std::move(content))),
            verify_checkpoint(at_));
}

TEST_F(CheckpointOfAModel, PendingLookupsAreThoseOfTheRank) {
  SmallModel small;
  const RestoredState state = load_checkpoint(at_, small.model());
  ASSERT_EQ(state.pending.size(), 2U);
  EXPECT_EQ(state.pending[0].step, 6);
  EXPECT_EQ(state.pending[0].read_version, 4);
  EXPECT_THAT(state.pending[0].pooled, ElementsAre(1, 2));
  EXPECT_THAT(state.pending[0].mask, IsEmpty());
  EXPECT_EQ(state.pending[1].step, 7);
  EXPECT_THAT(state.pending[1].mask, ElementsAre(3));
}

TEST_F(CheckpointOfAModel, OfAnotherNumberOfRanksHasNoPendingLookups) {
  SmallModel small;
  EXPECT_THAT(load_checkpoint(at_, small.model(), 0, 2).pending, IsEmpty());
}

TEST_F(CheckpointOfAModel, PendingLookupsThatEndTooEarlyAreRefused) {
  const std::string whole = read_file(at_ + "/pending-0.bin");
  std::string endless = whole;
  endless[16] = endless[23] = '\x7F';  // the number of its pooled floats
  for (const std::string& text : {whole.substr(0, 31), whole.substr(0, 36), endless}) {
    rewrite(at_, "pending-0.bin", text);
    EXPECT_THAT(load_error(small_job(), ErrorCode::kCorrupt),
                HasSubstr("pending-0.bin: ends within a lookup"));
  }
}

TEST_F(CheckpointOfAModel, OfOtherTablesIsRefusedWithTheFirstDifference) {
  job::JobConfig config = small_job();
  config.tables["default"].optimizer.type = RowOptimizerType::kAdagrad;
  EXPECT_THAT(load_error(config, ErrorCode::kInvalidConfig),
              HasSubstr("table 'user' was trained with optimizer sgd, the configuration says "
                        "adagrad"));
  config = small_job();
  config.tables["default"].weights = FloatType::kBf16;
  EXPECT_THAT(load_error(config, ErrorCode::kInvalidConfig), HasSubstr("has weights in fp32"));
  config = small_job();
  config.tables["default"].dim = 8;
  EXPECT_THAT(load_error(config, ErrorCode::kInvalidConfig),
              HasSubstr("rows of 4 weights (32 bytes with optimizer state); the configuration has "
                        "'user' with 8 (48 bytes)"));
  config = small_job();
  config.data.schema.features.resize(2);
  config.data.schema.features[1].name = "item";
  EXPECT_THAT(load_error(config, ErrorCode::kInvalidConfig),
              HasSubstr("has 1 tables, the configuration 2"));
}

TEST_F(CheckpointOfAModel, OfAnotherNetworkIsRefusedWithTheFirstDifference) {
  job::JobConfig config = small_job();
  config.model.top = {3};
  EXPECT_THAT(load_error(config, ErrorCode::kInvalidConfig),
              AllOf(HasSubstr("dense tensor '"), HasSubstr("does not fit")));
}

TEST_F(CheckpointOfAModel, WithoutRowsLoadsTheNetworkAlone) {
  fs::remove(at_ + "/table-0.bin");
  SmallModel small;
  EXPECT_EQ(load_dense_network(at_, small.model()).step, 5);
  EXPECT_EQ(small.model().tables->size().rows, 0);
  EXPECT_THAT(load_error(small_job(), ErrorCode::kCorrupt), HasSubstr("table-0.bin"));
}

}  // namespace
}  // namespace satrap::checkpoint
