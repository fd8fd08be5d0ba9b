#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "satrap/core/bounded_queue.h"
#include "satrap/core/thread_group.h"
#include "satrap/data/row_block_source.h"
#include "satrap/data/schema.h"
#include "src/data/file_list.h"
#include "src/data/line_cutter.h"
#include "src/data/ordered_jobs.h"
#include "src/data/row_parser.h"

namespace satrap::data {

/// Handles bad rows, over all passes of a source. One thread at a time calls add(), in the order of
/// the rows.
class BadRowPolicy {
 public:
  using Log = std::function<void(const std::string&)>;

  /// `stop`: the first bad row ends reading. Otherwise each is counted, the first ten are passed to
  /// `log`, and reading ends when there are more than `max_bad_rows` (0: no limit).
  BadRowPolicy(bool stop, std::int64_t max_bad_rows, Log log);

  /// Throws Error(kInvalidData) if reading must end.
  void add(const BadRows& bad);

  /// Thread-safe.
  std::int64_t count() const { return count_.load(std::memory_order_relaxed); }

  /// Message of the first bad row, "" if there was none.
  const std::string& first() const { return first_; }

 private:
  const bool stop_;
  const std::int64_t max_bad_rows_;
  const Log log_;
  std::atomic<std::int64_t> count_{0};
  std::int64_t num_shown_ = 0;
  std::string first_;
};

/// Reads the rows of text files: one thread cuts the files into blocks of lines, pass.num_threads
/// threads parse them, and next() returns the results in order. A fixed number of blocks is reused,
/// so memory is bounded.
class TextRows : public RowBlockSource {
 public:
  /// `schema` must outlive the source; `bad_rows` and `records`, if any, are shared by the
  /// passes of a source.
  TextRows(const Schema& schema,
           const FileList& files,
           const RowPass& pass,
           std::shared_ptr<BadRowPolicy> bad_rows,
           const LineCutter::Limits& limits = {},
           std::shared_ptr<FileRecords> records = nullptr);

  bool next(RowBlock& block) override;
  ReadStats stats() const override;
  bool was_closed() const override { return cutter_.was_cancelled(); }
  void close() override;

 private:
  struct Job {
    TextBlock text;
    RowBlock rows;
    BadRows bad;
    std::exception_ptr error;  // of reading or parsing this block
    bool end = false;          // no block: the end of the pass
  };
  using Jobs = OrderedJobs<Job>;

  void cut_blocks();
  void parse_blocks(RowParser& parser);

  LineCutter cutter_;
  const std::int64_t total_bytes_;
  const std::shared_ptr<BadRowPolicy> bad_rows_;

  Jobs jobs_;
  BoundedQueue<Jobs::Numbered*> cut_;  // from the cutter to the parsers
  bool ended_ = false;
  std::vector<std::unique_ptr<RowParser>> parsers_;  // one for each thread
  ThreadGroup threads_{[this] { TextRows::close(); }};
};

}  // namespace satrap::data
