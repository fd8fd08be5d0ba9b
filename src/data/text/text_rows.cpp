#include "src/data/text/text_rows.h"

#include <utility>

#include "satrap/core/error.h"

namespace satrap::data {

TextRows::TextRows(const Schema& schema,
                   const FileList& files,
                   const RowPass& pass,
                   std::shared_ptr<BadRowPolicy> bad_rows,
                   const LineCutter::Limits& limits,
                   std::shared_ptr<FileRecords> records,
                   FileFormat format)
    : TextRows(
          std::make_unique<LineCutter>(schema,
                                       files.paths(),
                                       pass,
                                       limits,
                                       std::move(records),
                                       format),
          [&] { return make_block_parser(format, schema, pass); },
          pass,
          std::move(bad_rows),
          files.total_bytes) {}

TextRows::TextRows(std::unique_ptr<TextBlockSource> blocks,
                   const std::function<std::unique_ptr<BlockParser>()>& make_parser,
                   const RowPass& pass,
                   std::shared_ptr<BadRowPolicy> bad_rows,
                   std::int64_t total_bytes)
    : blocks_(std::move(blocks)),
      counts_(pass, total_bytes, std::move(bad_rows)),
      jobs_(2 * pass.num_threads + 2),
      cut_(static_cast<std::size_t>(2 * pass.num_threads + 2)),
      tells_empty_(pass.tells_empty) {
  SATRAP_CHECK(pass.num_threads >= 1, "num_threads must be positive, got ", pass.num_threads);
  for (std::int64_t i = 0; i < pass.num_threads; ++i) {
    parsers_.push_back(make_parser());
  }
  threads_.start("data-cut", [this] { cut_blocks(); });
  for (const std::unique_ptr<BlockParser>& parser : parsers_) {
    threads_.start("data-parse", [this, &parser = *parser] { parse_blocks(parser); });
  }
}

void TextRows::cut_blocks() {
  while (Jobs::Numbered* const numbered = jobs_.acquire()) {
    Job& job = numbered->job;
    try {
      job.end = !blocks_->next(job.text);
      if (!job.end) {
        if (!cut_.push(numbered)) break;
        continue;
      }
    } catch (...) {
      job.error = std::current_exception();
    }
    jobs_.deliver(numbered);
    break;
  }
  cut_.close();
}

void TextRows::parse_blocks(BlockParser& parser) {
  while (const auto numbered = cut_.pop()) {
    Job& job = (*numbered)->job;
    try {
      job.rows.num_rows = 0;
      job.bad = {};
      if (job.text.num_lines > 0) parser.parse(job.text, job.rows, job.bad);
    } catch (...) {
      job.error = std::current_exception();
    }
    jobs_.deliver(*numbered);
  }
}

bool TextRows::next(RowBlock& block) {
  while (!ended_) {
    Jobs::Numbered* const numbered = jobs_.take();
    if (numbered == nullptr) break;
    Job& job = numbered->job;
    ended_ = true;  // in case one of these throws
    if (job.end) {
      counts_.end_pass();
      break;
    }
    if (job.error) std::rethrow_exception(job.error);
    end_row_ = job.text.first_row + job.text.num_lines;
    time_ms_.store(job.text.time_ms, std::memory_order_relaxed);
    counts_.add(job.bad, job.rows.num_rows);
    ended_ = false;
    std::swap(block, job.rows);
    jobs_.release(numbered);
    if (block.num_rows > 0 || tells_empty_) return true;
  }
  ended_ = true;
  block.num_rows = 0;
  return false;
}

ReadStats TextRows::stats() const {
  const std::int64_t bytes = blocks_->bytes_read();
  ReadStats stats = counts_.stats(bytes, blocks_->rows_read());
  stats.lag = blocks_->lag();
  stats.time_ms = time_ms_.load(std::memory_order_relaxed);
  return stats;
}

void TextRows::close() {
  blocks_->cancel();
  jobs_.close();
  cut_.close();
}

}  // namespace satrap::data
