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
      num_stretches_((num_parameters + kStretch - 1) / kStretch),
      stretches_(std::make_unique<Stretch[]>(static_cast<std::size_t>(num_stretches_))) {
  lanes_.reserve(DenseNetwork::kMaxLanes);
  next_.reserve(DenseNetwork::kMaxLanes);
}

void GradientSum::begin(std::span<const float* const> lanes,
                        const DenseNetwork::OnGradient& on_gradient) {
  lanes_.assign(lanes.begin(), lanes.end());
  next_.assign(lanes.size(), num_stretches_ - 1);
  on_gradient_ = on_gradient ? &on_gradient : nullptr;
  num_free_chunks_ = num_chunks();
  num_untold_ = num_stretches_;
  for (std::int64_t i = 0; i < num_stretches_; ++i) {
    Stretch& stretch = stretches_[static_cast<std::size_t>(i)];
    stretch.lanes_left = std::ssize(lanes_);
    stretch.chunks_left = std::min(kChunksOfStretch, num_chunks() - i * kChunksOfStretch);
  }
}

void GradientSum::advance(std::int64_t lane, std::int64_t first) {
  std::int64_t& stretch = next_[static_cast<std::size_t>(lane)];
  for (; stretch > 0 && stretch * kStretch >= first; --stretch) {
    --stretches_[static_cast<std::size_t>(stretch)].lanes_left;
  }
  add_complete_stretches();
}

// All but the first stretch. Whoever completes one comes here after that, so none is left out.
void GradientSum::add_complete_stretches() {
  std::int64_t end = num_free_chunks_;
  while (end > kChunksOfStretch) {
    const std::int64_t chunk = end - 1, stretch = chunk / kChunksOfStretch;
    if (stretches_[static_cast<std::size_t>(stretch)].lanes_left > 0) return;
    if (!num_free_chunks_.compare_exchange_strong(end, chunk)) continue;
    add_chunk(chunk);
    if (--stretches_[static_cast<std::size_t>(stretch)].chunks_left == 0) tell_of(stretch);
    end = num_free_chunks_;
  }
}

// In order: of those behind it first, by whoever has added the last of them.
void GradientSum::tell_of(std::int64_t stretch) {
  const std::lock_guard lock(telling_);
  if (stretch != num_untold_ - 1) return;
  const DenseNetwork::OnGradient& tell = *on_gradient_;
  do {
    tell(--num_untold_ * kStretch);
  } while (num_untold_ > 1 &&
           stretches_[static_cast<std::size_t>(num_untold_ - 1)].chunks_left == 0);
}

double GradientSum::finish(ThreadPool& pool) {
  pool.parallel_for(num_free_chunks_, [&](std::int64_t chunk) { add_chunk(chunk); });
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
