#include "rank_group.h"

#include <algorithm>
#include <cmath>

#include "stages.h"

namespace satrap::trainer {
namespace {

constexpr std::size_t kNumVotes = 4;

}  // namespace

RankGroup::RankGroup(Cluster& cluster, StageTimers& timers)
    : cluster_(cluster), timers_(timers), group_(cluster.make_communicator("dense")) {
  if (cluster.size() > 1) reducer_.emplace(*group_, cluster.timeout_ms());
}

dense::DenseNetwork::OnGradient RankGroup::on_gradient_of(dense::DenseNetwork& network) {
  if (!reducer_) return {};
  return [this, &network](std::int64_t first) { reducer_->ready_from(network.gradient(), first); };
}

StepVotes RankGroup::reduce(std::span<float> gradient, const StepVotes& mine) {
  if (cluster_.size() == 1) return mine;
  const ScopedStage timer(timers_, kStageAllreduce);
  reducer_->wait(gradient);
  const auto stretch = gradient.first(
      std::min(gradient.size(), static_cast<std::size_t>(dense::DenseNetwork::kGradientStretch)));
  message_.resize(stretch.size() + kNumVotes);
  std::ranges::copy(stretch, message_.begin());
  const auto votes = std::span(message_).last(kNumVotes);
  votes[0] = mine.nonfinite ? 1.0F : 0.0F;
  votes[1] = mine.stop ? 1.0F : 0.0F;
  votes[2] = mine.checkpoint ? 1.0F : 0.0F;
  votes[3] = mine.evaluate ? 1.0F : 0.0F;
  group_->all_reduce_sum(std::span(message_), cluster_.deadline());
  std::copy_n(message_.begin(), stretch.size(), stretch.begin());
  return {votes[0] > 0.0F, votes[1] > 0.0F, votes[2] > 0.0F, votes[3] > 0.0F};
}

void RankGroup::copy_from_chief(dense::DenseNetwork& network) {
  if (cluster_.size() == 1) return;
  for (dense::DenseNetwork::NamedTensor& tensor : network.state()) {
    group_->broadcast(std::as_writable_bytes(tensor.values), 0, cluster_.deadline());
  }
}

template <class T>
std::vector<T> RankGroup::gather_all(std::span<const T> values) {
  if (cluster_.size() == 1) return {values.begin(), values.end()};
  std::vector<double> sizes(static_cast<std::size_t>(cluster_.size()), 0.0);
  const auto me = static_cast<std::size_t>(cluster_.rank());
  sizes[me] = static_cast<double>(values.size());
  group_->all_reduce_sum(std::span(sizes), cluster_.deadline());
  std::size_t begin = 0, total = 0;
  for (std::size_t r = 0; r < sizes.size(); ++r) {
    if (r < me) begin += static_cast<std::size_t>(sizes[r]);
    total += static_cast<std::size_t>(sizes[r]);
  }
  std::vector<T> all(total);
  std::ranges::copy(values, all.begin() + static_cast<std::ptrdiff_t>(begin));
  std::span<T> rest = all;
  for (std::size_t r = 0; r < sizes.size(); ++r) {
    const std::span<T> part = rest.first(static_cast<std::size_t>(sizes[r]));
    rest = rest.subspan(part.size());
    if (part.empty()) continue;
    group_->broadcast(std::as_writable_bytes(part), static_cast<std::int64_t>(r),
                      cluster_.deadline());
  }
  return all;
}

std::vector<float> RankGroup::gather(std::span<const float> values) { return gather_all(values); }
std::vector<double> RankGroup::gather(std::span<const double> values) { return gather_all(values); }

std::vector<std::uint64_t> RankGroup::gather(std::span<const std::uint64_t> values) {
  return gather_all(values);
}

bool RankGroup::any(bool mine) {
  if (cluster_.size() == 1) return mine;
  double count = mine ? 1.0 : 0.0;
  group_->all_reduce_sum(std::span(&count, 1), cluster_.deadline());
  return count > 0.0;
}

void RankGroup::barrier() { group_->barrier(cluster_.deadline()); }

}  // namespace satrap::trainer
