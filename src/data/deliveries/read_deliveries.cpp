#include "src/data/deliveries/read_deliveries.h"

#include <utility>

namespace satrap::data {

CollectedBadRows::CollectedBadRows() : BadRowPolicy(false, {}, {}) {}

void CollectedBadRows::add(const BadRows& bad, std::int64_t num_good) {
  if (bad.count > 0 || bad.left_out > 0 || num_good > 0)
    entries_.push_back({bad, num_good, source_->end_row()});
}

void CollectedBadRows::end_pass(bool) {}

ReadDeliveries::ReadDeliveries(std::shared_ptr<const Schema> schema,
                               std::unique_ptr<RowBlockSource> rows,
                               std::shared_ptr<CollectedBadRows> bad_rows,
                               std::shared_ptr<const FileRecords> records,
                               std::vector<DataFile> listed,
                               std::shared_ptr<TopicLog> log)
    : schema_(std::move(schema)),
      bad_rows_(std::move(bad_rows)),
      records_(std::move(records)),
      log_(std::move(log)),
      rows_(std::move(rows)),
      noted_(std::move(listed)) {
  bad_rows_->attach(*rows_);
}

bool ReadDeliveries::next(RowDelivery& delivery) {
  std::deque<CollectedBadRows::Entry>& entries = bad_rows_->entries();
  if (entries.empty() && !has_ended_) has_ended_ = !rows_->next(block_);
  if (has_ended_ && rows_->was_closed()) return false;
  delivery.clear();
  delivery.is_end = has_ended_ && entries.empty();
  if (!entries.empty()) {
    CollectedBadRows::Entry& entry = entries.front();
    delivery.bad = std::move(entry.bad);
    delivery.end_row = entry.end_row;
    if (entry.num_good > 0) std::swap(delivery.rows, block_);
    entries.pop_front();
  } else if (!has_ended_) {
    delivery.end_row = rows_->end_row();
  }
  delivery.stats = rows_->stats();
  if (records_) note_files(delivery);
  if (log_) delivery.pieces = log_->take(delivery.end_row);
  return true;
}

void ReadDeliveries::note_files(RowDelivery& delivery) {
  const std::int64_t changes = records_->num_changes();
  if (changes == noted_changes_) return;
  noted_changes_ = changes;
  std::vector<DataFile> files = records_->files();
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (files[i] == noted_[i]) continue;
    delivery.files.push_back({static_cast<std::int64_t>(i), files[i]});
  }
  noted_ = std::move(files);
}

}  // namespace satrap::data
