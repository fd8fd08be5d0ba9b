#include "src/data/text_rows.h"

#include <algorithm>
#include <utility>

#include "satrap/core/error.h"

namespace satrap::data {

TextRows::TextRows(const Schema& schema,
                   const FileList& files,
                   const RowPass& pass,
                   std::shared_ptr<BadRowPolicy> bad_rows,
                   const LineCutter::Limits& limits,
                   std::shared_ptr<FileRecords> records)
    : cutter_(schema, files.paths(), pass, limits, std::move(records)),
      total_bytes_(files.total_bytes),
      has_all_rows_(pass.first_row == 0),
      max_rows_(pass.max_rows),
      bad_rows_(std::move(bad_rows)),
      jobs_(2 * pass.num_threads + 2),
      cut_(static_cast<std::size_t>(2 * pass.num_threads + 2)) {
  SATRAP_CHECK(pass.num_threads >= 1, "num_threads must be positive, got ", pass.num_threads);
  for (std::int64_t i = 0; i < pass.num_threads; ++i) {
    parsers_.push_back(std::make_unique<RowParser>(schema, pass));
  }
  threads_.start("data-cut", [this] { cut_blocks(); });
  for (const std::unique_ptr<RowParser>& parser : parsers_) {
    threads_.start("data-parse", [this, &parser = *parser] { parse_blocks(parser); });
  }
}

void TextRows::cut_blocks() {
  while (Jobs::Numbered* const numbered = jobs_.acquire()) {
    Job& job = numbered->job;
    try {
      job.end = !cutter_.next(job.text);
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

void TextRows::parse_blocks(RowParser& parser) {
  while (const auto numbered = cut_.pop()) {
    Job& job = (*numbered)->job;
    try {
      parser.parse(job.text, job.rows, job.bad);
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
      bad_rows_->end_pass(has_all_rows_);
      break;
    }
    if (job.error) std::rethrow_exception(job.error);
    bad_rows_->add(job.bad, job.rows.num_rows);
    num_good_ += job.rows.num_rows;
    num_bad_ += job.bad.count;
    ended_ = false;
    std::swap(block, job.rows);
    jobs_.release(numbered);
    if (block.num_rows > 0) return true;
  }
  ended_ = true;
  block.num_rows = 0;
  return false;
}

ReadStats TextRows::stats() const {
  // What has been read of a file is a part of it, but of few small ones it is all.
  const std::int64_t bytes = cutter_.bytes_read();
  const auto rows = static_cast<double>(cutter_.rows_read());
  double epoch_rows = 0.0;
  if (total_bytes_ > 0 && bytes > 0) {
    epoch_rows = rows * static_cast<double>(total_bytes_) / static_cast<double>(bytes);
    if (max_rows_ > 0) epoch_rows = std::min(epoch_rows, static_cast<double>(max_rows_));
    const auto good = static_cast<double>(num_good_), bad = static_cast<double>(num_bad_);
    if (good > 0.0) epoch_rows *= good / (good + bad);
  }
  return {.rows = 0,
          .bad_rows = bad_rows_->count(),
          .bytes = bytes,
          .total_bytes = total_bytes_,
          .epoch_rows = epoch_rows};
}

void TextRows::close() {
  cutter_.cancel();
  jobs_.close();
  cut_.close();
}

}  // namespace satrap::data
