#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "satrap/core/hash.h"
#include "satrap/data/row_block_source.h"

namespace satrap::data {

/// Shuffles the rows of a source within a buffer of `buffer_rows` rows: once it is full, every new
/// row replaces a random one, which is returned; at the end the rest is returned in random order.
/// The order is a function of `random`, the number of rows and the buffer's size alone. Row numbers
/// are lost. Used by one thread at a time; runs none.
class ShuffledRows : public RowBlockSource {
 public:
  ShuffledRows(std::unique_ptr<RowBlockSource> rows, std::int64_t buffer_rows, RandomStream random);

  bool next(RowBlock& block) override;
  std::int64_t rows_per_epoch() const override { return rows_->rows_per_epoch(); }
  ReadStats stats() const override { return rows_->stats(); }
  void close() override { rows_->close(); }
  bool was_closed() const override { return rows_->was_closed(); }

 private:
  /// A row in one piece: labels and numbers as bits, then per id column the number of ids (with
  /// kWeighted if weights follow), the ids, the weights; numbers and ids in two halves each. Keeps
  /// its memory when the next row replaces it.
  using PackedRow = std::vector<std::uint32_t>;

  bool refill();
  void pack(std::int64_t row, PackedRow& packed) const;
  void unpack(const PackedRow& packed, RowBlock& block) const;

  const std::unique_ptr<RowBlockSource> rows_;
  const std::int64_t buffer_rows_;
  const RandomStream random_;

  RowBlock input_;
  std::int64_t next_input_ = 0;  // row of input_
  std::size_t num_labels_ = 1;
  std::size_t num_numeric_ = 0;
  std::size_t num_id_columns_ = 0;
  std::vector<PackedRow> buffer_;
  std::int64_t num_buffered_ = 0;
  std::uint64_t num_draws_ = 0;
  std::int64_t rows_read_ = 0;  // up to here rows of earlier blocks of input have been taken
};

}  // namespace satrap::data
