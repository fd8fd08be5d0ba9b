#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "satrap/core/bounded_queue.h"
#include "satrap/core/thread_group.h"
#include "satrap/data/row_block_source.h"
#include "satrap/data/schema.h"
#include "src/data/files/file_list.h"
#include "src/data/rows/bad_row_policy.h"
#include "src/data/rows/ordered_jobs.h"
#include "src/data/rows/pass_counts.h"
#include "src/data/terms/file_format.h"
#include "src/data/text/block_parser.h"
#include "src/data/text/line_cutter.h"

namespace satrap::data {

/// Reads the rows of text: one thread cuts it into blocks of lines, pass.num_threads
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
           std::shared_ptr<FileRecords> records = nullptr,
           FileFormat format = FileFormat::kDelimited);

  /// Takes the lines from `blocks`, which will have read `total_bytes` at its end; 0: unknown.
  /// `make_parser` makes that of one thread.
  TextRows(std::unique_ptr<TextBlockSource> blocks,
           const std::function<std::unique_ptr<BlockParser>()>& make_parser,
           const RowPass& pass,
           std::shared_ptr<BadRowPolicy> bad_rows,
           std::int64_t total_bytes = 0);

  bool next(RowBlock& block) override;
  std::int64_t end_row() const override { return end_row_; }
  ReadStats stats() const override;
  bool was_closed() const override { return blocks_->was_cancelled(); }
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
  void parse_blocks(BlockParser& parser);

  const std::unique_ptr<TextBlockSource> blocks_;
  PassCounts counts_;

  Jobs jobs_;
  BoundedQueue<Jobs::Numbered*> cut_;  // from the cutter to the parsers
  const bool tells_empty_;             // RowPass
  bool ended_ = false;
  std::int64_t end_row_ = 0;
  std::atomic<std::int64_t> time_ms_{-1};              // of the block returned last
  std::vector<std::unique_ptr<BlockParser>> parsers_;  // one for each thread
  ThreadGroup threads_{[this] { TextRows::close(); }};
};

}  // namespace satrap::data
