#include "satrap/pipeline/rank_group.h"

#include <algorithm>
#include <numeric>

#include "satrap/pipeline/stages.h"

namespace satrap::pipeline {
namespace {

enum Vote : std::uint8_t { kStop = 1, kCheckpoint = 2, kEvaluate = 4, kReport = 8, kDecline = 16 };

std::uint8_t to_bits(const StepVotes& votes) {
  return static_cast<std::uint8_t>((votes.stop ? kStop : 0) | (votes.checkpoint ? kCheckpoint : 0) |
                                   (votes.evaluate ? kEvaluate : 0) | (votes.report ? kReport : 0) |
                                   (votes.decline ? kDecline : 0));
}

}  // namespace

RankGroup::RankGroup(Cluster& cluster, StageTimers& timers, const RankDevices& devices)
    : cluster_(cluster),
      timers_(timers),
      devices_(devices),
      group_(cluster.make_communicator("dense")) {
  if (cluster.size() > 1 && devices.group == nullptr)
    reducer_.emplace(*group_, cluster.timeout_ms());
}

dense::GradientSource::OnGradient RankGroup::on_gradient_of(dense::GradientSource& network) {
  if (!reducer_) return {};
  return [this, &network](std::int64_t first) { reducer_->ready_from(network.gradient(), first); };
}

StepVotes RankGroup::reduce(dense::GradientSource& network, const StepVotes& mine) {
  if (cluster_.size() == 1) return mine;
  const ScopedStage timer(timers_, kStageAllreduce);
  if (is_on_devices()) {
    queue_sum(network);
    return gather_votes(mine);
  }
  reducer_->wait(network.gradient());
  const auto sum = group_->begin_all_reduce_sum(network.flag_and_first_bucket());
  const StepVotes votes = gather_votes(mine);  // which travel meanwhile
  sum->add(cluster_.deadline());
  sum->finish(cluster_.deadline());
  return votes;
}

void RankGroup::queue_sum(dense::GradientSource& network) {
  const backend::StreamTimes::Span span(devices_.times, backend::StreamTimes::kExchange);
  const FloatMatrix values = network.flag_and_gradient_on_device();
  devices_.group->all_reduce_sum(static_cast<float*>(values.data), values.cols, *devices_.stream);
}

StepVotes RankGroup::gather_votes(const StepVotes& mine) {
  std::uint8_t bits = 0;
  for (const std::uint8_t theirs : gather_byte(to_bits(mine))) bits |= theirs;
  return {.stop = (bits & kStop) != 0,
          .checkpoint = (bits & kCheckpoint) != 0,
          .evaluate = (bits & kEvaluate) != 0,
          .report = (bits & kReport) != 0,
          .decline = (bits & kDecline) != 0};
}

void RankGroup::copy_from_chief(dense::Savable& network) {
  if (cluster_.size() == 1) return;
  dense::Savable::State state = network.save();
  for (dense::Savable::NamedTensor& tensor : state) {
    if (!network.has_fixed_state()) {
      const std::uint64_t size = tensor.values.size();
      tensor.values.resize(gather(std::span(&size, 1)).front());
    }
    group_->broadcast(std::as_writable_bytes(std::span(tensor.values)), 0, cluster_.deadline());
  }
  if (!cluster_.is_chief()) network.load(state);
}

std::vector<std::uint8_t> RankGroup::gather_byte(std::uint8_t mine) {
  std::vector<std::uint8_t> all(static_cast<std::size_t>(cluster_.size()));
  group_->all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)),
                     cluster_.deadline());
  return all;
}

template <class T>
std::vector<T> RankGroup::all_gather(std::span<const T> values) {
  if (cluster_.size() == 1) return {values.begin(), values.end()};
  const auto num_ranks = static_cast<std::size_t>(cluster_.size());
  const std::uint64_t size = values.size();
  std::vector<std::uint64_t> sizes(num_ranks);
  group_->all_gather(std::as_bytes(std::span(&size, 1)), std::as_writable_bytes(std::span(sizes)),
                     cluster_.deadline());
  std::vector<T> all(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}));
  const std::vector<std::span<const std::byte>> to(num_ranks, std::as_bytes(values));
  std::vector<std::span<std::byte>> from;
  std::span<T> rest = all;
  for (const std::size_t part : sizes) {
    from.push_back(std::as_writable_bytes(rest.first(part)));
    rest = rest.subspan(part);
  }
  group_->all_to_all(to, from, cluster_.deadline());
  return all;
}

std::vector<float> RankGroup::gather(std::span<const float> values) { return all_gather(values); }
std::vector<double> RankGroup::gather(std::span<const double> values) { return all_gather(values); }

std::vector<std::int64_t> RankGroup::gather(std::span<const std::int64_t> values) {
  return all_gather(values);
}
std::vector<std::uint64_t> RankGroup::gather(std::span<const std::uint64_t> values) {
  return all_gather(values);
}

bool RankGroup::any(bool mine) {
  if (cluster_.size() == 1) return mine;
  return std::ranges::any_of(gather_byte(mine ? 1 : 0),
                             [](std::uint8_t theirs) { return theirs != 0; });
}

void RankGroup::barrier() { group_->barrier(cluster_.deadline()); }

}  // namespace satrap::pipeline
