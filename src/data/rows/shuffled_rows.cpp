#include "src/data/rows/shuffled_rows.h"

#include <bit>
#include <utility>

#include "satrap/core/error.h"

namespace satrap::data {
namespace {

constexpr std::int64_t kOutputRows = 1024;
constexpr std::uint32_t kWeighted = 0x80000000U;

void push(std::uint64_t word, std::vector<std::uint32_t>& halves) {
  halves.push_back(static_cast<std::uint32_t>(word));
  halves.push_back(static_cast<std::uint32_t>(word >> 32));
}

std::uint64_t take(const std::uint32_t*& halves) {
  const std::uint64_t word = halves[0] | (static_cast<std::uint64_t>(halves[1]) << 32);
  halves += 2;
  return word;
}

}  // namespace

ShuffledRows::ShuffledRows(std::unique_ptr<RowBlockSource> rows,
                           std::int64_t buffer_rows,
                           RandomStream random)
    : rows_(std::move(rows)), buffer_rows_(buffer_rows), random_(random) {
  SATRAP_CHECK(buffer_rows >= 1, "buffer_rows must be positive, got ", buffer_rows);
}

bool ShuffledRows::refill() {
  if (next_input_ < input_.num_rows) return true;
  if (next_input_ > 0) rows_read_ = input_.row_number(next_input_ - 1) + 1;
  next_input_ = 0;
  if (!rows_->next(input_)) return false;
  num_labels_ = static_cast<std::size_t>(input_.num_labels);
  num_numeric_ = input_.numeric.size();
  num_id_columns_ = input_.bags.size();
  return true;
}

bool ShuffledRows::next(RowBlock& block) {
  while (num_buffered_ < buffer_rows_ && refill()) {
    if (num_buffered_ == static_cast<std::int64_t>(buffer_.size())) buffer_.emplace_back();
    pack(next_input_++, buffer_[static_cast<std::size_t>(num_buffered_++)]);
  }
  if (num_buffered_ < buffer_rows_ && was_closed()) num_buffered_ = 0;
  block.clear(static_cast<std::int64_t>(num_numeric_), static_cast<std::int64_t>(num_id_columns_),
              static_cast<std::int64_t>(num_labels_));
  while (block.num_rows < kOutputRows && num_buffered_ > 0) {
    PackedRow& chosen = buffer_[static_cast<std::size_t>(
        random_.below(num_draws_++, static_cast<std::uint64_t>(num_buffered_)))];
    unpack(chosen, block);
    if (refill()) {
      pack(next_input_++, chosen);
    } else {
      std::swap(chosen, buffer_[static_cast<std::size_t>(--num_buffered_)]);
    }
  }
  if (next_input_ > 0) rows_read_ = input_.row_number(next_input_ - 1) + 1;
  block.rows_read = rows_read_;
  return block.num_rows > 0;
}

void ShuffledRows::pack(std::int64_t row, PackedRow& packed) const {
  const auto r = static_cast<std::size_t>(row);
  packed.clear();
  for (std::size_t l = 0; l < num_labels_; ++l) {
    packed.push_back(std::bit_cast<std::uint32_t>(input_.labels[r * num_labels_ + l]));
  }
  for (const std::vector<double>& column : input_.numeric) {
    push(std::bit_cast<std::uint64_t>(column[r]), packed);
  }
  for (const RowBlock::Bags& bags : input_.bags) {
    const auto begin = static_cast<std::size_t>(bags.offsets[r]);
    const auto end = static_cast<std::size_t>(bags.offsets[r + 1]);
    const bool weighted = !bags.weights.empty();
    packed.push_back(static_cast<std::uint32_t>(end - begin) | (weighted ? kWeighted : 0U));
    for (std::size_t i = begin; i < end; ++i) {
      push(bags.ids[i], packed);
    }
    for (std::size_t i = begin; weighted && i < end; ++i) {
      packed.push_back(std::bit_cast<std::uint32_t>(bags.weights[i]));
    }
  }
}

void ShuffledRows::unpack(const PackedRow& packed, RowBlock& block) const {
  const std::uint32_t* next = packed.data();
  for (std::size_t l = 0; l < num_labels_; ++l) {
    block.labels.push_back(std::bit_cast<float>(*next++));
  }
  for (std::vector<double>& column : block.numeric) {
    column.push_back(std::bit_cast<double>(take(next)));
  }
  for (RowBlock::Bags& bags : block.bags) {
    const std::uint32_t head = *next++;
    const std::uint32_t count = head & ~kWeighted;
    for (std::uint32_t i = 0; i < count; ++i) bags.ids.push_back(take(next));
    if ((head & kWeighted) != 0) {
      for (std::uint32_t i = 0; i < count; ++i)
        bags.weights.push_back(std::bit_cast<float>(*next++));
    }
    bags.offsets.push_back(static_cast<std::int64_t>(bags.ids.size()));
  }
  ++block.num_rows;
}

}  // namespace satrap::data
