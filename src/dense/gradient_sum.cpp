#include "src/dense/gradient_sum.h"

#include <algorithm>
#include <numeric>

#include "satrap/dense/dense_network.h"
#include "src/dense/reduce.h"

namespace satrap::dense {
namespace {

constexpr std::int64_t kBucket = GradientSource::kGradientBucket;
constexpr std::int64_t kChunksPerBucket = kBucket / kReduceChunk;
static_assert(kBucket % kReduceChunk == 0);

}  // namespace

GradientSum::GradientSum(std::int64_t num_parameters)
    : all_(GradientSource::kFlagFloats + num_parameters),
      squares_(static_cast<std::size_t>((num_parameters + kReduceChunk - 1) / kReduceChunk)),
      num_buckets_((num_parameters + kBucket - 1) / kBucket),
      buckets_(std::make_unique<Bucket[]>(static_cast<std::size_t>(num_buckets_))) {
  replicas_.reserve(DenseNetwork::kMaxReplicas);
  next_.reserve(DenseNetwork::kMaxReplicas);
}

void GradientSum::begin(std::span<const float* const> replicas,
                        const GradientSource::OnGradient& on_gradient) {
  replicas_.assign(replicas.begin(), replicas.end());
  next_.assign(replicas.size(), num_buckets_ - 1);
  on_gradient_ = on_gradient ? &on_gradient : nullptr;
  num_free_chunks_ = num_chunks();
  {
    const MutexLock lock(telling_);
    num_untold_ = num_buckets_;
  }
  for (std::int64_t i = 0; i < num_buckets_; ++i) {
    Bucket& bucket = buckets_[static_cast<std::size_t>(i)];
    bucket.replicas_left = std::ssize(replicas_);
    bucket.chunks_left = std::min(kChunksPerBucket, num_chunks() - i * kChunksPerBucket);
  }
}

void GradientSum::advance(std::int64_t replica, std::int64_t first) {
  std::int64_t& bucket = next_[static_cast<std::size_t>(replica)];
  for (; bucket > 0 && bucket * kBucket >= first; --bucket) {
    --buckets_[static_cast<std::size_t>(bucket)].replicas_left;
  }
  add_complete_buckets();
}

// Adds all buckets but the first. A thread that completes a bucket then calls this, so none is
// missed.
void GradientSum::add_complete_buckets() {
  std::int64_t end = num_free_chunks_;
  while (end > kChunksPerBucket) {
    const std::int64_t chunk = end - 1, bucket = chunk / kChunksPerBucket;
    if (buckets_[static_cast<std::size_t>(bucket)].replicas_left > 0) return;
    if (!num_free_chunks_.compare_exchange_strong(end, chunk)) continue;
    add_chunk(chunk);
    if (--buckets_[static_cast<std::size_t>(bucket)].chunks_left == 0) tell_of(bucket);
    end = num_free_chunks_;
  }
}

// Reports buckets in order, the last one first. The thread that completed the bucket that is due
// also reports those after it that are complete already.
void GradientSum::tell_of(std::int64_t bucket) {
  const MutexLock lock(telling_);
  if (bucket != num_untold_ - 1) return;
  const GradientSource::OnGradient& tell = *on_gradient_;
  do {
    tell(--num_untold_ * kBucket);
  } while (num_untold_ > 1 && buckets_[static_cast<std::size_t>(num_untold_ - 1)].chunks_left == 0);
}

std::span<float> GradientSum::flag_and_first_bucket() {
  return all_.span().first(static_cast<std::size_t>(GradientSource::kFlagFloats +
                                                    std::min(kBucket, std::ssize(values()))));
}

double GradientSum::finish(ThreadPool& pool) {
  pool.parallel_for(num_free_chunks_, [&](std::int64_t chunk) { add_chunk(chunk); });
  return std::accumulate(squares_.begin(), squares_.end(), 0.0);
}

void GradientSum::add_chunk(std::int64_t chunk) {
  const std::int64_t first = chunk * kReduceChunk;
  const std::int64_t count = std::min(kReduceChunk, std::ssize(values()) - first);
  float* __restrict out = values().data() + first;
  std::copy_n(replicas_[0] + first, count, out);
  for (std::size_t l = 1; l < replicas_.size(); ++l) {
    const float* __restrict replica = replicas_[l] + first;
    for (std::int64_t i = 0; i < count; ++i) out[i] += replica[i];
  }
  squares_[static_cast<std::size_t>(chunk)] = sum_of_squares(out, count);
}

}  // namespace satrap::dense
