#include "satrap/table/row_file.h"

#include <cstring>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/table/table_snapshot.h"
#include "tests/support/temporary_directory.h"

namespace satrap::table {
namespace {

using testing::HasSubstr;

TableSpec spec_of(RowOptimizerType optimizer, TableId id = TableId{0}) {
  TableSpec spec;
  spec.name = "user";
  spec.id = id;
  spec.dim = 4;
  spec.optimizer.type = optimizer;
  return spec;
}

using Rows = std::map<std::uint64_t, std::vector<std::byte>>;  // by mixed id, header included

Rows rows_in(const Table& table) {
  Rows rows;
  table.for_each_row([&](const std::byte* row) {
    RowHeader header;
    std::memcpy(&header, row, sizeof(header));
    EXPECT_EQ(table_of(header.key), table.spec().id);
    rows[mixed_id_of(header.key)] = std::vector<std::byte>(row, row + table.row_bytes());
  });
  return rows;
}

float weight_of(const std::vector<std::byte>& row, std::size_t i) {
  float value = 0.0F;
  std::memcpy(&value, row.data() + sizeof(RowHeader) + i * sizeof(float), sizeof(value));
  return value;
}

std::uint32_t last_step_of(const std::vector<std::byte>& row) {
  RowHeader header;
  std::memcpy(&header, row.data(), sizeof(header));
  return header.last_step;
}

/// A file of 500 rows, updated in steps 1 to 500: weights and state are all 3.
class RowFileTest : public testing::Test {
 protected:
  RowFileTest() : table_(spec_of(RowOptimizerType::kAdagrad), 1) {
    for (std::uint64_t id = 1; id <= 500; ++id) {
      const Key key = make_key(TableId{0}, id);
      RowPointer row = nullptr;
      table_.find_or_insert({&key, 1}, {&row, 1});
      table_.update_partition(
          partition_of(key), static_cast<std::int64_t>(id), {&row, 1},
          [](std::int64_t, RowPointer p) { std::fill_n(weights_of(p), 8, 3.0F); });
    }
    file_ = write("table-0.bin", 0, 1);
  }

  RowFile write(const std::string& name, std::int64_t part, std::int64_t num_parts) {
    RowFile file{.path = folder_.path() + "/" + name,
                 .row_bytes = table_.row_bytes(),
                 .part = part,
                 .num_parts = num_parts};
    FileWriter writer(file.path);
    TableSnapshot(table_, 500).write([&](std::span<const std::byte> rows) {
      for (std::size_t at = 0; at < rows.size(); at += static_cast<std::size_t>(file.row_bytes)) {
        RowHeader header;
        std::memcpy(&header, rows.data() + at, sizeof(header));
        if (shard_of(header.key, num_parts) != part) continue;
        writer.write(rows.subspan(at, static_cast<std::size_t>(file.row_bytes)));
      }
    });
    writer.finish();
    file.bytes = writer.bytes_written();
    file.xxh3 = to_hex(writer.checksum());
    return file;
  }

  static std::string error_of(const RowFile& file, const TableSpec& spec) {
    Table table(spec, 1);
    try {
      load_rows(file, table, {.last_step = 500});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  TemporaryDirectory folder_;
  Table table_;
  RowFile file_;
};

TEST_F(RowFileTest, GivesTheRowsThatWereWritten) {
  Table loaded(spec_of(RowOptimizerType::kAdagrad), 1);
  load_rows(file_, loaded, {.last_step = 500});
  EXPECT_EQ(rows_in(loaded), rows_in(table_));
}

TEST_F(RowFileTest, RowsGetTheNumberOfTheTableAndNoLaterStepThanTheJobs) {
  Table loaded(spec_of(RowOptimizerType::kAdagrad, TableId{7}), 1);
  load_rows(file_, loaded, {.last_step = 20});
  const Rows rows = rows_in(loaded);
  ASSERT_EQ(rows.size(), 500U);
  EXPECT_EQ(last_step_of(rows.at(mix_id(3))), 3U);
  EXPECT_EQ(last_step_of(rows.at(mix_id(21))), 20U);
}

TEST_F(RowFileTest, RowsOfAJobThatHasNotBegunCountAsUpdated) {
  Table loaded(spec_of(RowOptimizerType::kAdagrad), 1);
  load_rows(file_, loaded, {.last_step = 0});
  for (const auto& [id, row] : rows_in(loaded)) EXPECT_EQ(last_step_of(row), 1U);
}

TEST_F(RowFileTest, EveryRowGoesToItsShardFromFilesOfAnyNumberOfShards) {
  for (const std::int64_t parts : {1, 2, 3}) {
    for (const std::int64_t shards : {1, 2, 5}) {
      Rows all;
      for (std::int64_t shard = 0; shard < shards; ++shard) {
        Table loaded(spec_of(RowOptimizerType::kAdagrad), 1, shards);
        for (std::int64_t part = 0; part < parts; ++part) {
          load_rows(write("part", part, parts), loaded,
                    {.shard = shard, .num_shards = shards, .last_step = 500});
        }
        for (const auto& [id, row] : rows_in(loaded)) {
          EXPECT_EQ(shard_of(make_key(TableId{0}, unmix_id(id)), shards), shard);
          EXPECT_TRUE(all.emplace(id, row).second);
        }
      }
      EXPECT_EQ(all, rows_in(table_)) << parts << " files, " << shards << " shards";
    }
  }
}

TEST_F(RowFileTest, AFileWithoutRowsOfTheShardIsNotOpened) {
  Table loaded(spec_of(RowOptimizerType::kAdagrad), 1, 2);
  RowFile missing = write("part", 2, 4);
  missing.path += ".not-there";
  load_rows(missing, loaded, {.shard = 0, .num_shards = 2, .last_step = 500});
  EXPECT_EQ(loaded.num_rows(), 0);
  EXPECT_THROW(load_rows(missing, loaded, {.shard = 1, .num_shards = 2, .last_step = 500}), Error);
}

TEST_F(RowFileTest, WeightsAloneBeginWithTheStateOfAFreshRow) {
  file_.weights_only = true;
  Table loaded(spec_of(RowOptimizerType::kAdam), 1);  // twice the state
  load_rows(file_, loaded, {.last_step = 500});
  const Rows rows = rows_in(loaded);
  ASSERT_EQ(rows.size(), 500U);
  for (const auto& [id, row] : rows) {
    for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(weight_of(row, i), i < 4 ? 3.0F : 0.0F);
  }
  Table smaller(spec_of(RowOptimizerType::kSgd), 1);  // none
  load_rows(file_, smaller, {.last_step = 500});
  EXPECT_EQ(weight_of(rows_in(smaller).at(mix_id(5)), 3), 3.0F);
}

TEST_F(RowFileTest, WhatDoesNotFitOrMatchIsNamed) {
  const TableSpec spec = spec_of(RowOptimizerType::kAdagrad);
  EXPECT_EQ(error_of(file_, spec), "");
  EXPECT_THAT(error_of(file_, spec_of(RowOptimizerType::kSgd)), HasSubstr("'user' has rows of 32"));
  RowFile changed = file_;
  changed.xxh3 = "0123";
  EXPECT_THAT(error_of(changed, spec), HasSubstr("table-0.bin: checksum does not match"));
  changed = file_;
  changed.bytes += file_.row_bytes;
  EXPECT_THAT(error_of(changed, spec), HasSubstr("the manifest says"));
  changed = file_;
  changed.path += "x";
  EXPECT_THAT(error_of(changed, spec), HasSubstr("table-0.binx: missing"));
  changed = file_;
  changed.num_parts = 2;
  EXPECT_THAT(error_of(changed, spec), HasSubstr("is not of part 0 of 2"));
}

}  // namespace
}  // namespace satrap::table
