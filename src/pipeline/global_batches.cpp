#include "satrap/pipeline/global_batches.h"

#include <algorithm>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/net/net_error.h"
#include "satrap/pipeline/stages.h"

namespace satrap::pipeline {
GlobalBatches::GlobalBatches(data::BatchSource& source,
                             const data::Schema& schema,
                             const data::DataPosition& start,
                             std::unique_ptr<collective::Communicator> group,
                             const Cluster& cluster,
                             StageTimers& timers)
    : source_(source),
      num_features_(std::ssize(schema.features)),
      num_numeric_(schema.num_numeric_outputs()),
      num_labels_(schema.num_labels()),
      group_(std::move(group)),
      cluster_(cluster),
      timers_(timers),
      position_(start),
      lines_(static_cast<std::size_t>(cluster.size())) {
  static_assert(std::is_trivially_copyable_v<Line>);  // it is sent unchanged
}

bool GlobalBatches::next(data::Batch& batch, RankShares& shares) {
  if (!group_ || cluster_.size() == 1) return next_alone(batch, shares);
  agree();
  while (must_wait()) {
    holds_up_ = false;
    agree();
  }
  if (!hear(shares)) return false;
  if (hands_out_) {
    std::swap(batch, next_);
    has_next_ = false;
    position_ = source_.position();
    return true;
  }
  batch.num_examples = 0;
  batch.num_features = num_features_;
  batch.num_numeric = num_numeric_;
  batch.num_labels = num_labels_;
  batch.labels.clear();
  batch.numeric.clear();
  batch.offsets.assign(1, 0);
  batch.ids.clear();
  batch.id_weights.clear();
  batch.groups.clear();
  batch.weights.clear();
  return true;
}

bool GlobalBatches::next_alone(data::Batch& batch, RankShares& shares) {
  const ScopedStage timer(timers_, kStageRead);
  try {
    if (!source_.next(batch)) return false;
  } catch (...) {
    error_ = std::current_exception();
    return false;
  }
  shares.global_examples = batch.num_examples;
  shares.first_example = 0;
  shares.positions.assign(1, source_.position());
  shares.ended_epochs = source_.has_ended_epoch() ? source_.position().epoch + 1 : 0;
  return true;
}

void GlobalBatches::read_ahead() {
  const ScopedStage timer(timers_, kStageRead);
  try {
    is_idle_ = !has_next_ && !source_.wait(holds_up_ ? std::chrono::milliseconds(0) : kIdleAfter);
    if (!has_next_ && !is_idle_) has_next_ = source_.next(next_);
  } catch (...) {
    error_ = std::current_exception();  // the others hear of it
  }
}

void GlobalBatches::agree() {
  read_ahead();
  const ScopedStage timer(timers_, kStageAgree);
  const Line mine = line();
  group_->all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(lines_)),
                     cluster_.deadline());
}

/// Nobody has examples, and some rank may still get some.
bool GlobalBatches::must_wait() const {
  const auto any = [&](const auto& is_so) { return std::ranges::any_of(lines_, is_so); };
  return any([](const Line& line) { return line.examples == kIdle; }) &&
         !any([](const Line& line) { return line.examples != kIdle && line.examples != 0; });
}

void GlobalBatches::want_ahead(std::int64_t num_batches) {
  const bool has_end = source_.rows_per_epoch() > 0 || source_.stats().total_bytes > 0;
  wanted_ahead_ = has_end ? num_batches : 0;
  if (!group_ || cluster_.size() == 1) num_ahead_ = wanted_ahead_;
}

GlobalBatches::Line GlobalBatches::line() const {
  Line line;
  line.before = position_;
  line.wanted_ahead = wanted_ahead_;
  const data::ReadStats stats = source_.stats();
  line.lag = stats.lag;
  line.time_ms = stats.time_ms;
  line.read_seconds = timers_.seconds(kStageRead);
  if (error_) {
    line.examples = kFailed;
  } else if (!has_next_ && source_.is_endless()) {
    line.examples = is_idle_ ? kIdle : kStopped;
  }
  if (!has_next_) return line;
  line.after = source_.position();
  line.examples = next_.num_examples;
  line.epoch = line.after.epoch;
  line.ends_epoch = source_.has_ended_epoch();
  return line;
}

/// The lag of all ranks' data if they are endless; -1 while one rank does not know its own.
std::int64_t GlobalBatches::lag() const {
  if (!source_.is_endless()) return -1;
  std::int64_t sum = 0;
  for (const Line& line : lines_) {
    if (line.lag < 0) return -1;
    sum += line.lag;
  }
  return sum;
}

/// The time of the rank that is furthest behind, as of partitions: one that has read all does not
/// count, unless all have.
std::int64_t GlobalBatches::time_ms() const {
  if (!source_.is_endless()) return -1;
  std::int64_t newest = -1;
  std::optional<std::int64_t> oldest;
  for (const Line& line : lines_) {
    newest = std::max(newest, line.time_ms);
    if (line.lag != 0) oldest = std::min(oldest.value_or(line.time_ms), line.time_ms);
  }
  return oldest.value_or(newest);
}

/// The step consists of the batches of the earliest epoch that any rank is still in.
bool GlobalBatches::hear(RankShares& shares) {
  std::optional<std::int64_t> epoch;
  holds_up_ = is_idle_;
  num_ahead_ = wanted_ahead_;
  bool has_stopped = false;
  for (const Line& line : lines_) {
    has_stopped |= line.examples == kStopped;
    num_ahead_ = std::min(num_ahead_, line.wanted_ahead);
    if (line.examples == kFailed && !error_) {
      error_ = std::make_exception_ptr(
          net::NetError(net::NetFailure::kRemote,
                        concat("rank ", &line - lines_.data(), " could not read its data")));
    }
    if (line.examples > 0) epoch = std::min(epoch.value_or(line.epoch), line.epoch);
  }
  if (error_ || !epoch || has_stopped) return false;
  shares.global_examples = shares.first_example = 0;
  shares.lag = lag();
  shares.time_ms = time_ms();
  shares.positions.clear();
  shares.read_seconds.clear();
  for (const Line& line : lines_) shares.read_seconds.push_back(line.read_seconds);
  shares.ended_epochs = *epoch + 1;
  for (std::int64_t r = 0; r < cluster_.size(); ++r) {
    const Line& line = lines_[static_cast<std::size_t>(r)];
    const bool hands_out = line.examples > 0 && line.epoch == *epoch;
    if (r == cluster_.rank()) {
      shares.first_example = shares.global_examples;
      hands_out_ = hands_out;
    }
    if (hands_out) shares.global_examples += line.examples;
    if (hands_out && !line.ends_epoch) shares.ended_epochs = 0;
    shares.positions.push_back(hands_out ? line.after : line.before);
  }
  return true;
}

void GlobalBatches::close() {
  source_.close();
  if (group_) group_->close();
}

}  // namespace satrap::pipeline
