#include "src/ps/gradient_merge.h"

#include <algorithm>

#include "satrap/kernels/dims.h"
#include "satrap/table/sharding.h"

namespace satrap::ps {

void GradientMerge::start(std::span<const RowGradients> ranks,
                          std::int64_t dim,
                          std::int64_t num_shards) {
  ranks_ = ranks;
  dim_ = dim;
  num_shards_ = num_shards;
  next_.assign(ranks.size(), 0);
  rows_.resize(kBlock);
  sums_.resize(kBlock);
  memory_.resize(std::max(memory_.size(), (kBlock + 1) * index(dim)));
}

bool GradientMerge::next_block() {
  size_ = 0;
  while (size_ < kBlock) {
    const std::optional<Key> key = least_key();
    if (!key) break;
    const std::int64_t partition = table::partition_of(*key, num_shards_);
    if (size_ > 0 && partition != partition_) break;
    partition_ = partition;
    add_row(*key);
  }
  return size_ > 0;
}

std::optional<Key> GradientMerge::least_key() const {
  std::optional<Key> least;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    if (next_[r] == ranks_[r].keys.size()) continue;
    const Key key = ranks_[r].keys[next_[r]];
    if (!least || key < *least) least = key;
  }
  return least;
}

void GradientMerge::add_row(Key key) {
  float* const sum = memory_.data() + size_ * index(dim_);
  float* const decoded = memory_.data() + kBlock * index(dim_);
  const float* gradient = nullptr;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const RowGradients& rank = ranks_[r];
    if (next_[r] == rank.keys.size() || rank.keys[next_[r]] != key) continue;
    const std::size_t at = next_[r]++;
    if (gradient == nullptr) {
      rows_[size_] = rank.rows[at];
      prefetch_write(rank.rows[at], static_cast<std::int64_t>(sizeof(RowHeader)) + 4 * dim_);
      gradient = values_at(rank, at, sum);
      continue;
    }
    if (gradient != sum) std::copy_n(gradient, dim_, sum);
    const float* const more = values_at(rank, at, decoded);
    with_dim(dim_, [&](auto dim) {
      for (std::int64_t d = 0; d < dim; ++d) sum[d] += more[d];
    });
    gradient = sum;
  }
  sums_[size_++] = gradient;
}

/// The values as floats: in the received bytes, or decoded.
const float* GradientMerge::values_at(const RowGradients& rank,
                                      std::size_t at,
                                      float* decoded) const {
  const std::int64_t bytes = bytes_of(rank.encoding) * dim_;
  const std::byte* const from = rank.values + static_cast<std::int64_t>(at) * bytes;
  if (rank.encoding == FloatType::kFp32) return reinterpret_cast<const float*>(from);
  decode_floats(rank.encoding, {from, index(bytes)}, {decoded, index(dim_)});
  return decoded;
}

}  // namespace satrap::ps
