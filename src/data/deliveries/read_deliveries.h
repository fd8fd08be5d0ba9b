#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "satrap/data/row_deliveries.h"
#include "src/data/files/file_records.h"
#include "src/data/rows/bad_row_policy.h"
#include "src/data/topic/topic_log.h"

namespace satrap::data {

/// Keeps the bad rows of a pass for the process that judges them.
class CollectedBadRows : public BadRowPolicy {
 public:
  struct Entry {
    BadRows bad;
    std::int64_t num_good = 0;  // rows of the same block
    std::int64_t end_row = 0;   // the number after that of its last row
  };

  CollectedBadRows();
  void add(const BadRows& bad, std::int64_t num_good) override;
  void end_pass(bool had_all_rows) override;

  /// The source that calls add() while it is in next().
  void attach(const RowBlockSource& source) { source_ = &source; }
  std::deque<Entry>& entries() { return entries_; }

 private:
  const RowBlockSource* source_ = nullptr;
  std::deque<Entry> entries_;
};

/// The deliveries of rows that are read here.
class ReadDeliveries : public RowDeliveries {
 public:
  /// `bad_rows` is that of `rows`; `records` those of its files, which were `listed` before `rows`
  /// was opened, null if it reads a topic, of which `log` is told.
  ReadDeliveries(std::shared_ptr<const Schema> schema,
                 std::unique_ptr<RowBlockSource> rows,
                 std::shared_ptr<CollectedBadRows> bad_rows,
                 std::shared_ptr<const FileRecords> records,
                 std::vector<DataFile> listed,
                 std::shared_ptr<TopicLog> log);

  bool next(RowDelivery& delivery) override;
  void close() override { rows_->close(); }

 private:
  void note_files(RowDelivery& delivery);

  const std::shared_ptr<const Schema> schema_;  // of rows_
  const std::shared_ptr<CollectedBadRows> bad_rows_;
  const std::shared_ptr<const FileRecords> records_;
  const std::shared_ptr<TopicLog> log_;
  const std::unique_ptr<RowBlockSource> rows_;
  RowBlock block_;  // read, not delivered
  std::int64_t noted_changes_ = 0;
  std::vector<DataFile> noted_;  // as they have been delivered
  bool has_ended_ = false;
};

}  // namespace satrap::data
