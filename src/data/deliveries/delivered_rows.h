#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "satrap/core/mutex.h"
#include "satrap/data/row_deliveries.h"
#include "src/data/files/file_records.h"
#include "src/data/rows/bad_row_policy.h"
#include "src/data/topic/topic_log.h"

namespace satrap::data {

/// The rows of a pass that other processes read. What they report of bad rows and files counts as
/// if they had been read here.
class DeliveredRows : public RowBlockSource {
 public:
  /// `bad_rows`, and `records` of files or the `log` of a topic, are shared by the passes of a
  /// source.
  DeliveredRows(std::unique_ptr<RowDeliveries> deliveries,
                const RowPass& pass,
                std::shared_ptr<BadRowPolicy> bad_rows,
                std::shared_ptr<FileRecords> records,
                std::shared_ptr<TopicLog> log);

  bool next(RowBlock& block) override;
  std::int64_t end_row() const override { return delivery_.end_row; }
  ReadStats stats() const override;
  bool was_closed() const override { return was_closed_; }
  void close() override { deliveries_->close(); }

 private:
  void take_notes();

  const std::unique_ptr<RowDeliveries> deliveries_;
  const std::shared_ptr<BadRowPolicy> bad_rows_;
  const std::shared_ptr<FileRecords> records_;
  const std::shared_ptr<TopicLog> log_;
  const bool has_all_rows_;
  RowDelivery delivery_;
  bool ended_ = false;
  std::atomic<bool> was_closed_{false};
  mutable Mutex mutex_;
  ReadStats stats_ SATRAP_GUARDED_BY(mutex_);
};

}  // namespace satrap::data
