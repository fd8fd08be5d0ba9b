#include "src/dense/gradient_sum.h"

#include <algorithm>
#include <numeric>

#include "src/dense/reduce.h"

namespace satrap::dense {
namespace {

constexpr std::int64_t kStretch = DenseNetwork::kGradientStretch;
constexpr std::int64_t kChunksOfStretch = kStretch / kReduceChunk;
static_assert(kStretch % kReduceChunk == 0);

}  // namespace

GradientSum::GradientSum(std::int64_t num_parameters)
    : values_(num_parameters),
      squares_(static_cast<std::size_t>((num_parameters + kReduceChunk - 1) / kReduceChunk)),
      num_stretches_((num_parameters + kStretch - 1) / kStretch) {
  counts_ = std::make_unique<std::atomic<std::int64_t>[]>(static_cast<std::size_t>(num_stretches_));
  lanes_.reserve(DenseNetwork::kMaxLanes);
  next_.reserve(DenseNetwork::kMaxLanes);
}

void GradientSum::begin(std::span<const float* const> lanes,
                        const DenseNetwork::OnGradient& on_gradient) {
  lanes_.assign(lanes.begin(), lanes.end());
  next_.assign(lanes.size(), num_stretches_ - 1);
  num_left_ = num_stretches_;
  on_gradient_ = on_gradient ? &on_gradient : nullptr;
  for (std::int64_t i = 0; i < num_stretches_; ++i) counts_[static_cast<std::size_t>(i)] = 0;
}

// Every lane comes to the stretches in the same order, so whoever is the last to come to one comes
// after those that were last to come to the stretches behind it: they are told of in order.
void GradientSum::advance(std::int64_t lane, std::int64_t first) {
  std::int64_t& stretch = next_[static_cast<std::size_t>(lane)];
  for (; stretch > 0 && stretch * kStretch >= first; --stretch) {
    if (++counts_[static_cast<std::size_t>(stretch)] < std::ssize(lanes_)) continue;
    const std::int64_t chunk = stretch * kChunksOfStretch;
    const std::int64_t end = std::min(chunk + kChunksOfStretch, std::ssize(squares_));
    for (std::int64_t c = chunk; c < end; ++c) add_chunk(c);
    num_left_ = stretch;
    (*on_gradient_)(stretch* kStretch);
  }
}

double GradientSum::finish(ThreadPool& pool) {
  pool.parallel_for(std::min(num_left_ * kChunksOfStretch, std::ssize(squares_)),
                    [&](std::int64_t chunk) { add_chunk(chunk); });
  return std::accumulate(squares_.begin(), squares_.end(), 0.0);
}

void GradientSum::add_chunk(std::int64_t chunk) {
  const std::int64_t first = chunk * kReduceChunk;
  const std::int64_t count = std::min(kReduceChunk, std::ssize(values_.span()) - first);
  float* __restrict out = values_.data() + first;
  std::copy_n(lanes_[0] + first, count, out);
  for (std::size_t l = 1; l < lanes_.size(); ++l) {
    const float* __restrict lane = lanes_[l] + first;
    for (std::int64_t i = 0; i < count; ++i) out[i] += lane[i];
  }
  squares_[static_cast<std::size_t>(chunk)] = sum_of_squares(out, count);
}

}  // namespace satrap::dense
