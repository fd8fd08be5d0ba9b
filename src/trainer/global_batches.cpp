#include "global_batches.h"

#include <algorithm>
#include <span>
#include <utility>

#include "stages.h"

namespace satrap::trainer {
namespace {

/// A rank's line of the table: of the batch it could hand out, and where it stands before and
/// after. Exact in a double up to 2^53.
enum Column : std::size_t {
  kRows,
  kEpoch,
  kBefore,
  kAfter = kBefore + 3,
  kNumColumns = kAfter + 3
};

void put(std::span<double> cells, const data::DataPosition& position) {
  cells[0] = static_cast<double>(position.epoch);
  cells[1] = static_cast<double>(position.batches);
  cells[2] = static_cast<double>(position.next_row);
}

data::DataPosition position_in(std::span<const double> cells) {
  return {static_cast<std::int64_t>(cells[0]), static_cast<std::int64_t>(cells[1]),
          static_cast<std::int64_t>(cells[2])};
}

}  // namespace

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
      table_(static_cast<std::size_t>(cluster.size()) * kNumColumns) {}

bool GlobalBatches::next(data::Batch& batch, RankShares& shares) {
  if (!group_ || cluster_.size() == 1) return next_alone(batch, shares);
  {
    const ScopedStage timer(timers_, kStageRead);
    read_ahead();
  }
  const ScopedStage timer(timers_, kStageAgree);
  tell();
  group_->all_reduce_sum(std::span(table_), cluster_.deadline());
  if (!hear(shares)) return false;
  if (hands_out_) {
    std::swap(batch, next_);
    has_next_ = false;
    position_ = source_.position();
    return true;
  }
  batch.num_rows = 0;
  batch.num_features = num_features_;
  batch.num_numeric = num_numeric_;
  batch.num_labels = num_labels_;
  batch.labels.clear();
  batch.numeric.clear();
  batch.offsets.assign(1, 0);
  batch.ids.clear();
  batch.id_weights.clear();
  batch.groups.clear();
  return true;
}

bool GlobalBatches::next_alone(data::Batch& batch, RankShares& shares) {
  const ScopedStage timer(timers_, kStageRead);
  if (!source_.next(batch)) return false;
  shares.global_rows = batch.num_rows;
  shares.first_row = 0;
  shares.positions.assign(1, source_.position());
  return true;
}

void GlobalBatches::read_ahead() {
  if (!has_next_) has_next_ = source_.next(next_);
}

void GlobalBatches::tell() {
  std::ranges::fill(table_, 0.0);
  const auto line = std::span(table_).subspan(
      static_cast<std::size_t>(cluster_.rank()) * kNumColumns, kNumColumns);
  put(line.subspan(kBefore, 3), position_);
  if (!has_next_) return;
  const data::DataPosition after = source_.position();
  line[kRows] = static_cast<double>(next_.num_rows);
  line[kEpoch] = static_cast<double>(after.epoch);
  put(line.subspan(kAfter, 3), after);
}

/// The batches of the earliest epoch that any rank is still in make the step.
bool GlobalBatches::hear(RankShares& shares) {
  const auto line = [&](std::int64_t rank) {
    return std::span<const double>(table_).subspan(static_cast<std::size_t>(rank) * kNumColumns,
                                                   kNumColumns);
  };
  double epoch = -1.0;
  for (std::int64_t r = 0; r < cluster_.size(); ++r) {
    if (line(r)[kRows] > 0.0 && (epoch < 0.0 || line(r)[kEpoch] < epoch)) epoch = line(r)[kEpoch];
  }
  if (epoch < 0.0) return false;
  shares.global_rows = shares.first_row = 0;
  shares.positions.clear();
  for (std::int64_t r = 0; r < cluster_.size(); ++r) {
    const bool hands_out = line(r)[kRows] > 0.0 && line(r)[kEpoch] == epoch;
    if (r == cluster_.rank()) {
      shares.first_row = shares.global_rows;
      hands_out_ = hands_out;
    }
    if (hands_out) shares.global_rows += static_cast<std::int64_t>(line(r)[kRows]);
    shares.positions.push_back(position_in(line(r).subspan(hands_out ? kAfter : kBefore, 3)));
  }
  return true;
}

void GlobalBatches::close() {
  source_.close();
  if (group_) group_->close();
}

}  // namespace satrap::trainer
