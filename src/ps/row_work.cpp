#include "src/ps/row_work.h"

#include <algorithm>
#include <cstring>

#include "satrap/kernels/dims.h"
#include "satrap/kernels/pool.h"
#include "satrap/kernels/row_update.h"

namespace satrap::ps {
namespace {

constexpr std::size_t kRowsPerBlock = 512;  // found, then copied while they are in the cache
constexpr std::size_t kAhead = 8;           // rows between prefetching one and reading it

/// Copies the weights of `rows` to `out`, one after the other.
void gather(const RowLayout& layout, std::span<const table::RowPointer> rows, float* out) {
  if (layout.weight_type != FloatType::kFp32) {
    for (std::size_t i = 0; i < rows.size(); ++i, out += layout.dim) {
      if (i + kAhead < rows.size()) prefetch_read(rows[i + kAhead], layout.state_offset);
      layout.read_weights(rows[i], out);
    }
    return;
  }
  with_dim(layout.dim, [&](auto dim) {
    const std::int64_t bytes = dim * static_cast<std::int64_t>(sizeof(float));
    for (std::size_t i = 0; i < rows.size(); ++i, out += dim) {
      if (i + kAhead < rows.size()) prefetch_read(table::weights_of(rows[i + kAhead]), bytes);
      std::memcpy(out, table::weights_of(rows[i]), index(bytes));
    }
  });
}

}  // namespace

void RowWork::read(table::Table& table,
                   std::int64_t step,
                   std::span<const Key> keys,
                   std::span<table::RowPointer> rows,
                   FloatType encoding,
                   std::byte* out) {
  const std::int64_t dim = table.spec().dim;
  for (std::size_t begin = 0; begin < keys.size(); begin += kRowsPerBlock) {
    const std::size_t size = std::min(kRowsPerBlock, keys.size() - begin);
    const auto block = rows.subspan(begin, size);
    table.find_or_insert(keys.subspan(begin, size), block, step);
    const std::int64_t num_floats = static_cast<std::int64_t>(size) * dim;
    const std::int64_t bytes = bytes_of(encoding) * num_floats;
    if (encoding == FloatType::kFp32) {
      gather(table.layout(), block, reinterpret_cast<float*>(out));
    } else {
      floats_.resize(std::max(floats_.size(), index(num_floats)));
      gather(table.layout(), block, floats_.data());
      encode_floats(encoding, std::span(floats_).first(index(num_floats)), {out, index(bytes)});
    }
    out += bytes;
  }
}

void RowWork::look_up(const table::Table& table,
                      std::span<const Key> keys,
                      FloatType encoding,
                      std::byte* out) {
  const std::int64_t dim = table.spec().dim;
  const std::int64_t bytes = bytes_of(encoding) * dim;
  found_.resize(kRowsPerBlock);
  missing_.resize(index(table.row_bytes()));
  floats_.resize(std::max(floats_.size(), index(dim)));
  for (std::size_t begin = 0; begin < keys.size(); begin += kRowsPerBlock) {
    const std::size_t size = std::min(kRowsPerBlock, keys.size() - begin);
    table.find(keys.subspan(begin, size), std::span(found_).first(size));
    for (std::size_t i = 0; i < size; ++i, out += bytes) {
      table::RowPointer row = found_[i];
      if (row == nullptr) {
        row = missing_.data();
        table.fill_missing(keys[begin + i], row);
      }
      table.layout().read_weights(row, floats_.data());
      encode_floats(encoding, std::span(floats_).first(index(dim)), {out, index(bytes)});
    }
  }
}

void RowWork::skip(table::Table& table,
                   std::int64_t num_shards,
                   std::span<const Key> keys,
                   std::span<const table::RowPointer> rows,
                   std::int64_t mark) {
  for (std::size_t begin = 0; begin < keys.size();) {
    const std::size_t end = table::end_of_partition(keys, begin, num_shards);
    table.skip_partition(table::partition_of(keys[begin], num_shards), mark,
                         rows.subspan(begin, end - begin));
    begin = end;
  }
}

namespace {

/// One rank, fp32: directly from the received bytes.
template <RowOptimizerType kType, class Dim>
void update_rows(table::Table& table,
                 std::int64_t num_shards,
                 const RowGradients& gradients,
                 const TableStep& table_step,
                 std::int64_t mark,
                 float* scratch,  // [dim]
                 Dim dim) {
  const auto* values = reinterpret_cast<const float*>(gradients.values);
  const auto distance = index(gather_distance(dim));
  const std::int64_t row_bytes = table.row_bytes();
  const auto rows = gradients.rows;
  for (std::size_t begin = 0; begin < rows.size();) {
    const std::size_t end = table::end_of_partition(gradients.keys, begin, num_shards);
    const std::int64_t partition = table::partition_of(gradients.keys[begin], num_shards);
    table.update_partition(partition, mark, rows.subspan(begin, end - begin),
                           [&](std::int64_t i, table::RowPointer row) {
                             const std::size_t at = begin + index(i);
                             if (at + distance < rows.size()) {
                               prefetch_write(rows[at + distance], row_bytes);
                             }
                             const float* gradient = values + static_cast<std::int64_t>(at) * dim;
                             table.layout().change(row, table_step.rounding_seed, scratch,
                                                   [&](float* weights, float* state) {
                                                     update_row<kType>(table_step.step, weights,
                                                                       state, gradient, dim);
                                                   });
                           });
    begin = end;
  }
}

}  // namespace

void RowWork::update(table::Table& table,
                     std::int64_t num_shards,
                     std::span<const RowGradients> ranks,
                     std::int64_t step,
                     std::int64_t mark) {
  const table::TableSpec& spec = table.spec();
  const TableStep table_step = table.table_step(step);
  floats_.resize(std::max(floats_.size(), index(spec.dim)));
  const bool in_place = ranks.size() == 1 && ranks[0].encoding == FloatType::kFp32;
  with_optimizer(spec.optimizer.type, [&](auto type) {
    with_dim(spec.dim, [&](auto dim) {
      if (in_place) {
        update_rows<type()>(table, num_shards, ranks[0], table_step, mark, floats_.data(), dim);
        return;
      }
      merge_.start(ranks, spec.dim, num_shards);
      while (merge_.next_block()) {
        table.update_partition(
            merge_.partition(), mark, merge_.rows(), [&](std::int64_t i, table::RowPointer row) {
              table.layout().change(
                  row, table_step.rounding_seed, floats_.data(), [&](float* weights, float* state) {
                    update_row<type()>(table_step.step, weights, state, merge_.gradient(i), dim);
                  });
            });
      }
    });
  });
}

}  // namespace satrap::ps
