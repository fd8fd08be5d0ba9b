#include "satrap/checkpoint/checkpoint_format.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "satrap/core/resource.h"
#include "tests/checkpoint/small_checkpoint.h"
#include "tests/support/temporary_directory.h"

namespace satrap::checkpoint {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// A manifest with every field set.
Manifest full_manifest() {
  Manifest m;
  m.created = "2024-05-06T07:08:09Z";
  m.version = "1.2.3";
  m.step = 12;
  m.examples = 120;
  m.nonfinite_steps = 3;
  m.positions = {{1, 2, 3, 30}, {1, 4, 5, 50}};
  m.ended_epochs = 2;
  m.first_eval_row = 123;
  m.metrics = {{"eval.auc", 0.75}, {"train.loss", 0.1}};
  m.early_stopping = EarlyStoppingState{"auc", 10, 8, 0.875, 2};
  m.tables.push_back({"user", "adagrad", "bf16", {"table-0.bin"}, 4, 48, 2});
  m.dense.push_back({"top.weight", {2, 3}});
  m.files["table-0.bin"] = {96, "0123456789abcdef"};
  m.files["dense.bin"] = {24, "0123456789abcdef"};
  return m;
}

class ManifestTest : public testing::Test {
 protected:
  std::string path() const { return directory_.path() + "/manifest.json"; }
  void write(const std::string& text) const { write_file_atomic(path(), text); }
  Manifest read() const { return Manifest::read(directory_.path()); }

  /// The error of reading a manifest whose JSON was changed by `edit` and whose checksum is right.
  std::string error_after(const std::function<void(nlohmann::ordered_json&)>& edit) const {
    auto json = nlohmann::ordered_json::parse(full_manifest().to_json());
    json.erase("checksum");
    edit(json);
    json["checksum"] = to_hex(hash_bytes(json.dump()));
    write(json.dump());
    return error_of(ErrorCode::kCorrupt, [&] { read(); });
  }

  const TemporaryDirectory directory_;
};

TEST_F(ManifestTest, ReadsBackAsItWasWritten) {
  write(full_manifest().to_json());
  const Manifest m = read();
  EXPECT_EQ(m.created, "2024-05-06T07:08:09Z");
  EXPECT_EQ(m.version, "1.2.3");
  EXPECT_EQ(m.step, 12);
  EXPECT_EQ(m.examples, 120);
  EXPECT_EQ(m.nonfinite_steps, 3);
  EXPECT_EQ(m.positions, full_manifest().positions);
  EXPECT_EQ(m.ended_epochs, 2);
  EXPECT_EQ(m.first_eval_row, 123);
  EXPECT_EQ(m.metrics, full_manifest().metrics);
  EXPECT_EQ(m.early_stopping, full_manifest().early_stopping);
  EXPECT_FALSE(m.has_packed_rows);
  EXPECT_EQ(m.to_json(), full_manifest().to_json());
}

TEST_F(ManifestTest, OfNothingButARankReadsBackToo) {
  Manifest empty;
  empty.positions.resize(1);
  write(empty.to_json());
  const Manifest m = read();
  EXPECT_EQ(m.step, 0);
  EXPECT_TRUE(m.tables.empty());
  EXPECT_TRUE(m.dense.empty());
  EXPECT_TRUE(m.files.empty());
  EXPECT_EQ(m.early_stopping, std::nullopt);
}

TEST_F(ManifestTest, AMetricThatWasUndefinedIsNotThere) {
  Manifest manifest = full_manifest();
  manifest.metrics["eval.auc"] = std::numeric_limits<double>::quiet_NaN();
  write(manifest.to_json());
  EXPECT_EQ(read().metrics, (std::map<std::string, double>{{"train.loss", 0.1}}));
}

TEST_F(ManifestTest, ThatIsMissingIsNamed) {
  EXPECT_EQ(error_of(ErrorCode::kCorrupt, [&] { read(); }), path() + ": missing or unreadable");
}

TEST_F(ManifestTest, ThatEndsTooEarlyIsNone) {
  const std::string text = full_manifest().to_json();
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, text.size() / 2}) {
    write(text.substr(0, size));
    EXPECT_THAT(error_of(ErrorCode::kCorrupt, [&] { read(); }), HasSubstr("not a manifest"))
        << size << " bytes";
  }
}

TEST_F(ManifestTest, AChangedNumberIsNoticedByItsChecksum) {
  std::string text = full_manifest().to_json();
  text.replace(text.find("120"), 3, "121");
  write(text);
  EXPECT_EQ(error_of(ErrorCode::kCorrupt, [&] { read(); }),
            path() + ": checksum does not match its content");
}

TEST_F(ManifestTest, OfAnotherFormatIsRefusedWithBoth) {
  EXPECT_EQ(error_after([](auto& json) { json["format"] = 4; }),
            path() + ": format 4, this program reads formats 2 and 3");
}

TEST_F(ManifestTest, OfAnotherShapeIsRefusedWhateverItsChecksum) {
  EXPECT_THAT(error_after([](auto& json) { json["step"] = "twelve"; }),
              HasSubstr("not a manifest"));
  for (const double number : {1e300, 1.5}) {
    EXPECT_THAT(error_after([&](auto& json) { json["step"] = number; }),
                HasSubstr("not a manifest"));
    EXPECT_THAT(error_after([&](auto& json) { json["dense"][0]["shape"][0] = number; }),
                HasSubstr("not a manifest"));
  }
  EXPECT_THAT(error_after([](auto& json) { json.erase("dense"); }),
              AllOf(HasSubstr("not a manifest"), HasSubstr("dense")));
  EXPECT_THAT(error_after([](auto& json) { json["positions"].clear(); }),
              HasSubstr("not a manifest"));
}

TEST_F(ManifestTest, OfContentThatCannotBeIsRefusedWhateverItsChecksum) {
  EXPECT_EQ(error_after([](auto& json) { json["tables"][0]["row_bytes"] = 0; }),
            path() +
                ": table 'user': row_bytes is 0, rows of 4 weights in bf16 with optimizer "
                "adagrad have 48");
}

TEST_F(ManifestTest, OfEndlessDepthIsRefused) {
  const std::string deep(200'000, '[');
  write(R"({"format": 3, "checksum": "", "metrics": )" + deep + std::string(deep.size(), ']') +
        "}");
  EXPECT_EQ(error_of(ErrorCode::kCorrupt, [&] { read(); }),
            path() + ": not a manifest: nested more than 8 deep");
}

TEST_F(ManifestTest, OfManyTensorsTakesTimeInProportion) {
  Manifest m = full_manifest();
  m.dense.assign(100'000, {"w", {1}});
  m.files["dense.bin"].bytes = 400'000;
  write(m.to_json());
  const double before = cpu_seconds();
  EXPECT_EQ(read().dense.size(), 100'000U);
  EXPECT_LT(cpu_seconds() - before, 20.0);  // with the square of their number, a minute
}

TEST_F(ManifestTest, ABracketInATextIsNoDepth) {
  Manifest m = full_manifest();
  m.tables[0].name = "[[[[[[[[[[\\\"{{{";
  write(m.to_json());
  EXPECT_EQ(read().tables[0].name, m.tables[0].name);
}

TEST_F(ManifestTest, OfFormatTwoHasPackedRows) {
  EXPECT_EQ(error_after([](auto& json) {
              json["format"] = 2;
              json["tables"][0]["row_bytes"] = 40;
              json["files"]["table-0.bin"]["bytes"] = 80;
            }),
            "");
  const Manifest m = read();
  EXPECT_TRUE(m.has_packed_rows);
  const RowLayout layout = m.tables[0].layout();  // 4 weights of 16 bits, 4 floats of state
  EXPECT_EQ(m.row_bytes(layout), 16 + 4 * 2 + 4 * 4);
  EXPECT_EQ(full_manifest().row_bytes(layout), 16 + 16 + 16);
}

TEST(ManifestTable, HasTheLayoutThatItsNamesSay) {
  Manifest::Table table{"user", "adam", "fp32", {}, 6, 0, 0};
  EXPECT_EQ(table.layout().row_bytes,
            RowLayout::of(6, FloatType::kFp32, RowOptimizerType::kAdam).row_bytes);
  table.optimizer = "lion";
  EXPECT_EQ(error_of(ErrorCode::kCorrupt, [&] { table.layout(); }),
            "table 'user': the manifest says lion, which is not a type of weights or optimizer");
  table = {"user", "adam", "fp8", {}, 6, 0, 0};
  EXPECT_THAT(error_of(ErrorCode::kCorrupt, [&] { table.layout(); }), HasSubstr("fp8"));
}

TEST(ManifestTensor, HasTheProductOfItsExtents) {
  EXPECT_EQ((Manifest::Tensor{"scalar", {}}.size()), 1);
  EXPECT_EQ((Manifest::Tensor{"weight", {2, 3, 4}}.size()), 24);
  EXPECT_EQ((Manifest::Tensor{"empty", {5, 0}}.size()), 0);
}

TEST(ManifestPosition, IsItsOwnForTheSameRanks) {
  Manifest m;
  m.positions = {{0, 4, 70}, {0, 5, 80}};
  EXPECT_EQ(m.position_of(0, 2), (data::DataPosition{0, 4, 70}));
  EXPECT_EQ(m.position_of(1, 2), (data::DataPosition{0, 5, 80}));
}

TEST(ManifestPosition, IsBehindTheLastRowOfAnyForOtherRanks) {
  Manifest m;
  m.positions = {{0, 4, 80, 85}, {0, 5, 70, 90}};
  EXPECT_EQ(m.position_of(0, 1), (data::DataPosition{0, 10, 80, 90}));
  EXPECT_EQ(m.position_of(3, 5), (data::DataPosition{0, 2, 80, 90}));
}

TEST(ManifestPosition, IsOfTheLatestEpochThatAnyHasReached) {
  Manifest m;
  m.positions = {{1, 1, 10}, {0, 9, 90}, {1, 2, 5}};
  EXPECT_EQ(m.position_of(0, 1), (data::DataPosition{1, 6, 10}));
}

TEST(CheckpointNames, SortByStep) {
  EXPECT_EQ(checkpoint_name(0), "step-000000000000");
  EXPECT_EQ(checkpoint_name(1000), "step-000000001000");
  EXPECT_LT(checkpoint_name(999), checkpoint_name(1000));
  EXPECT_EQ(pending_file(12), "pending-12.bin");
}

}  // namespace
}  // namespace satrap::checkpoint
