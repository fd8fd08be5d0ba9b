#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "satrap/data/config.h"
#include "satrap/data/row_block.h"
#include "src/data/columnar/parquet.h"
#include "src/data/text/field_reader.h"

namespace satrap::data {

/// The ids of a column that has at most one in a row, found a whole block at a time: with a row at
/// a time each look into a dictionary would wait for memory. Each text of a dictionary is hashed
/// once. One thread at a time.
class SingleIds {
 public:
  /// The kind of a value. kUnusual: no id, or one that takes a closer look.
  enum class Is : std::uint8_t { kNone, kId, kUnusual };

  /// Replaces them by those of the next block: `num_rows` integers that are ids, or texts. The
  /// values must stay until the ids are put; the dictionary is the one before, maybe with more.
  void find(const ParquetValues& values,
            ParquetFile::Kind kind,
            const FeatureConfig& feature,
            std::size_t num_rows,
            FieldReader& fields);

  bool are_usual() const { return are_usual_; }

  /// Puts them into a bag per row, of at least as many ids. The ids are undefined afterwards.
  void put(RowBlock::Bags& bags);

  /// Before single ones are asked for.
  void unpack();
  Is what(std::size_t row) const { return rows_.what[row]; }
  std::uint64_t id(std::size_t row) const { return rows_.ids[row]; }

 private:
  /// An id for each of some values, where they are ids.
  struct Ids {
    std::vector<std::uint64_t> ids;
    std::vector<Is> what;
    bool are_ids = true;  // all of them
    void resize(std::size_t size);
    void find(const FeatureConfig& feature,
              std::string_view text,
              std::size_t i,
              FieldReader& fields);
  };
  void find_texts(const FeatureConfig& feature, FieldReader& fields);
  void find_entries(const FeatureConfig& feature, FieldReader& fields);
  void find_nulls(bool have_id_of_missing);

  const ParquetValues* values_ = nullptr;
  Ids entries_;             // [dictionary]
  Ids rows_;                // of the block
  bool is_packed_ = false;  // rows_ has the ids of rows that have one, one after another
  bool are_usual_ = false;
};

}  // namespace satrap::data
