#include "src/data/deliveries/delivered_rows.h"

#include <algorithm>
#include <utility>

namespace satrap::data {

DeliveredRows::DeliveredRows(std::unique_ptr<RowDeliveries> deliveries,
                             const RowPass& pass,
                             std::shared_ptr<BadRowPolicy> bad_rows,
                             std::shared_ptr<FileRecords> records,
                             std::shared_ptr<TopicLog> log)
    : deliveries_(std::move(deliveries)),
      bad_rows_(std::move(bad_rows)),
      records_(std::move(records)),
      log_(std::move(log)),
      has_all_rows_(pass.first_row == 0) {}

bool DeliveredRows::next(RowBlock& block) {
  while (!ended_) {
    ended_ = true;  // in case one of these throws
    if (!deliveries_->next(delivery_)) {
      was_closed_ = true;
      break;
    }
    take_notes();
    if (delivery_.is_end) {
      bad_rows_->end_pass(has_all_rows_);
      break;
    }
    bad_rows_->add(delivery_.bad, delivery_.rows.num_rows);
    ended_ = false;
    std::swap(block, delivery_.rows);
    if (block.num_rows > 0) return true;
  }
  block.num_rows = 0;
  return false;
}

void DeliveredRows::take_notes() {
  if (records_) {
    for (const FileNote& note : delivery_.files) records_->take(note);
  }
  if (log_) {
    for (const TopicPiece& piece : delivery_.pieces) log_->add(piece);
  }
  const MutexLock lock(mutex_);
  // Each loader reads all files, of which it parses a part: the furthest is how far they are.
  stats_.bytes = std::max(stats_.bytes, delivery_.stats.bytes);
  stats_.lag = delivery_.stats.lag;
  stats_.time_ms = delivery_.stats.time_ms;
  if (delivery_.stats.epoch_rows > 0.0) stats_.epoch_rows = delivery_.stats.epoch_rows;
}

ReadStats DeliveredRows::stats() const {
  const MutexLock lock(mutex_);
  ReadStats stats = stats_;
  stats.bad_rows = bad_rows_->count();
  stats.left_out = bad_rows_->left_out();
  return stats;
}

}  // namespace satrap::data
