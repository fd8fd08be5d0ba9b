#include "src/checkpoint/manifest_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/checkpoint/small_checkpoint.h"

namespace satrap::checkpoint {
namespace {

constexpr std::int64_t kHuge = std::int64_t{1} << 62;

/// The refusal of a manifest that `edit` has changed; "" if there is none.
template <class Edit>
std::string refusal_after(Edit&& edit) {
  Manifest m;
  m.positions.resize(2);
  m.tables.push_back({"user", "sgd", "fp32", {"table-0.bin"}, 4, 32, 2});
  m.tables.push_back({"item", "sgd", "fp32", {"table-1.bin"}, 4, 32, 2});
  m.dense.push_back({"w", {2, 3}});
  m.dense.push_back({"b", {3}});
  m.files["table-0.bin"] = {64, ""};
  m.files["table-1.bin"] = {64, ""};
  m.files["dense.bin"] = {36, ""};
  edit(m);
  return error_of(ErrorCode::kCorrupt, [&] { check_manifest(m, "m.json"); });
}

TEST(ManifestCheck, AcceptsWhatAJobWrites) {
  EXPECT_EQ(refusal_after([](Manifest&) {}), "");
  EXPECT_EQ(refusal_after([](Manifest& m) { m.dense[1].shape = {3, 1}; }), "");
  EXPECT_EQ(refusal_after([](Manifest& m) {
              m.dense[1].shape = {5, 0};
              m.files["dense.bin"].bytes = 24;
            }),
            "");
  EXPECT_EQ(refusal_after([](Manifest& m) {
              m.tables[1].files = {};
              m.tables[1].rows = 0;
            }),
            "")
      << "a table without rows";
  const auto pack = [](Manifest& m) {
    m.has_packed_rows = true;
    for (Manifest::Table& table : m.tables) {
      table.dim = 1;
      table.row_bytes = 16 + 4;
      m.files[table.files[0]].bytes = 40;
    }
  };
  EXPECT_EQ(refusal_after(pack), "");
}

TEST(ManifestCheck, CountsAreNotNegativeAndTheirSumsFit) {
  EXPECT_EQ(refusal_after([](Manifest& m) { m.step = -1; }),
            "m.json: step is -1, not one of 0 to 281474976710656");
  EXPECT_NE(refusal_after([](Manifest& m) { m.examples = kHuge; }), "");
  EXPECT_NE(refusal_after([](Manifest& m) { m.nonfinite_steps = -1; }), "");
  EXPECT_NE(refusal_after([](Manifest& m) { m.positions[1].batches = kHuge; }), "");
  EXPECT_NE(refusal_after([](Manifest& m) { m.positions[1].epoch = -1; }), "");
  EXPECT_NE(refusal_after([](Manifest& m) { m.positions[0].next_row = -1; }), "");
  EXPECT_NE(refusal_after([](Manifest& m) { m.positions.resize(1 << 15); }), "");
  EXPECT_NE(refusal_after([](Manifest& m) { m.tables[0].rows = -1; }), "");
  EXPECT_NE(refusal_after([](Manifest& m) { m.files["table-0.bin"].bytes = -1; }), "");
  const auto sum = [](Manifest& m) {
    for (Manifest::Table& table : m.tables) table.rows = std::int64_t{1} << 48;
  };
  EXPECT_EQ(refusal_after(sum),
            "m.json: the sum up to rows of table 'item' is 562949953421312, more than "
            "281474976710656");
}

TEST(ManifestCheck, RowsHaveTheSizeOfTheirLayout) {
  for (const std::int64_t row_bytes : {0, -32, 16, 48}) {
    EXPECT_EQ(refusal_after([&](Manifest& m) { m.tables[0].row_bytes = row_bytes; }),
              concat("m.json: table 'user': row_bytes is ", row_bytes,
                     ", rows of 4 weights in fp32 with optimizer sgd have 32"));
  }
  for (const std::int64_t dim : {std::int64_t{0}, std::int64_t{-4}, kHuge}) {
    EXPECT_EQ(refusal_after([&](Manifest& m) { m.tables[0].dim = dim; }),
              concat("m.json: table 'user': dim is ", dim, ", not one of 1 to 65536"));
  }
}

TEST(ManifestCheck, RowsAreThoseOfTheFiles) {
  for (const std::int64_t rows : {0, 1, 1'000'000'000}) {
    EXPECT_EQ(refusal_after([&](Manifest& m) { m.tables[1].rows = rows; }),
              concat("m.json: table 'item': it has ", rows, " rows, its files 2"));
  }
  EXPECT_EQ(refusal_after([](Manifest& m) { m.tables[0].files = {"dense.bin"}; }),
            "m.json: table 'user': dense.bin has 36 bytes, rows have 32");
  EXPECT_EQ(refusal_after([](Manifest& m) { m.tables[0].files = {}; }),
            "m.json: table 'user': it has 2 rows, its files 0");
  EXPECT_EQ(refusal_after([](Manifest& m) { m.tables[0].files = {"../x.bin"}; }),
            "m.json: table 'user': its file ../x.bin is not listed");
  EXPECT_EQ(refusal_after([](Manifest& m) {
              m.tables[0].files.assign(100'000, "table-0.bin");
              m.tables[0].rows = 200'000;
            }),
            "m.json: table 'user': its file table-0.bin is listed twice");
  EXPECT_EQ(refusal_after([](Manifest& m) { m.tables[1].files = m.tables[0].files; }),
            "m.json: table 'item': its file table-0.bin is listed twice");
}

TEST(ManifestCheck, TensorsAreThoseOfTheirFile) {
  EXPECT_EQ(refusal_after([](Manifest& m) { m.dense.pop_back(); }),
            "m.json: dense.bin has 36 bytes, its tensors 24");
  EXPECT_EQ(refusal_after([](Manifest& m) { m.files.erase("dense.bin"); }),
            "m.json: dense.bin has 0 bytes, its tensors 36");
}

TEST(ManifestCheck, TensorsHaveASize) {
  EXPECT_EQ(refusal_after([](Manifest& m) { m.dense[0].shape = {2, -3}; }),
            "m.json: an extent of tensor 'w' is -3, not one of 0 to 281474976710656");
  EXPECT_EQ(refusal_after([](Manifest& m) { m.dense[0].shape.assign(3, std::int64_t{1} << 40); }),
            "m.json: tensor 'w' has more than 281474976710656 numbers");
}

TEST(ManifestCheck, FilesAreBesideTheManifest) {
  for (const char* name : {"", ".", "..", "../table-0.bin", "/etc/passwd", "a\nb"}) {
    EXPECT_EQ(refusal_after([&](Manifest& m) { m.files[name] = {}; }),
              concat("m.json: '", name, "' is not the name of a file beside it"));
  }
}

}  // namespace
}  // namespace satrap::checkpoint
