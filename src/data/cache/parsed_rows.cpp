#include "src/data/cache/parsed_rows.h"

#include <algorithm>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/log.h"

namespace satrap::data {

ParsedRows::ParsedRows(const Schema& schema,
                       std::shared_ptr<ParsedRowFile> file,
                       const RowPass& pass,
                       std::int64_t begin_row,
                       std::int64_t total_bytes,
                       ParsePass parse,
                       std::shared_ptr<BadRowPolicy> bad_rows,
                       std::shared_ptr<FileRecords> records)
    : schema_(schema),
      file_(std::move(file)),
      pass_(pass),
      begin_row_(begin_row),
      total_bytes_(total_bytes),
      parse_(std::move(parse)),
      records_(std::move(records)),
      counts_(pass, total_bytes, std::move(bad_rows)) {
  const std::vector<CachedBlock>& blocks = file_->blocks();
  const auto first = std::ranges::upper_bound(blocks, pass.first_row, {}, &CachedBlock::end_row);
  next_block_ = static_cast<std::size_t>(first - blocks.begin());
}

bool ParsedRows::next(RowBlock& block) {
  while (!closed_) {
    if (parsed_) {
      if (next_parsed(block)) return true;
    } else if (next_block_ == file_->blocks().size()) {
      note_files(INT64_MAX);
      counts_.end_pass();
      break;
    } else if (next_cached(block)) {
      return true;
    }
  }
  block.num_rows = 0;
  return false;
}

bool ParsedRows::next_parsed(RowBlock& block) {
  if (parsed_->next(block)) return true;
  const MutexLock lock(mutex_);
  if (!closed_) parsed_.reset();
  return false;
}

bool ParsedRows::next_cached(RowBlock& block) {
  const CachedBlock& cached = file_->blocks()[next_block_];
  if (cached.num_bad > 0 && begins_within(next_block_)) {
    ++next_block_;
    parse(pass_.first_row, cached.end_row);
    return false;
  }
  block.num_labels = schema_.num_labels();
  block.numeric.resize(schema_.raw_numeric.size());
  block.bags.resize(schema_.id_columns.size());
  block.kept.resize(schema_.kept.size());
  try {
    file_->read(next_block_, schema_.labels, block, bad_);
  } catch (const Error& error) {
    parse_rest(error.what());
    return false;
  }
  ++next_block_;
  block.drop_before(pass_.first_row);
  note_files(cached.end_row);
  counts_.add(bad_, block.num_rows);
  rows_read_ = cached.end_row;
  bytes_read_ = static_cast<std::int64_t>(static_cast<double>(total_bytes_) *
                                          static_cast<double>(cached.offset + cached.bytes) /
                                          static_cast<double>(file_->num_bytes()));
  return block.num_rows > 0;
}

/// Whether rows of the block may come before the pass.
bool ParsedRows::begins_within(std::size_t block) const {
  return pass_.first_row > (block == 0 ? begin_row_ : file_->blocks()[block - 1].end_row);
}

void ParsedRows::parse(std::int64_t first_row, std::int64_t end_row) {
  RowPass pass = pass_;
  pass.first_row = first_row;
  pass.max_rows = end_row;
  std::unique_ptr<RowBlockSource> parsed = parse_(pass);
  const MutexLock lock(mutex_);
  parsed_ = std::move(parsed);
  if (closed_) parsed_->close();
}

void ParsedRows::parse_rest(const std::string& why) {
  log_warning("data.cache: '{}' is not used any further: {}; the rows are parsed again",
              shown_path(file_->path()), why);
  try {
    remove_all(file_->path());
  } catch (const Error& error) {
    log_warning("data.cache: {}; remove it, or the next run finds it damaged too", error.what());
  }
  const std::int64_t end_of_last =
      next_block_ == 0 ? begin_row_ : file_->blocks()[next_block_ - 1].end_row;
  next_block_ = file_->blocks().size();
  has_parsed_rest_ = true;
  parse(std::max(pass_.first_row, end_of_last), pass_.max_rows);
}

/// Notes the files that begin before `end_row`, as their parser would: one that was read to its end
/// when the next one begins, or at the end of the pass.
void ParsedRows::note_files(std::int64_t end_row) {
  if (!records_ || has_parsed_rest_) return;
  const std::vector<DataFile>& files = file_->files();
  const auto end_file = [&] {
    if (next_file_ == 0 || files[next_file_ - 1].num_rows < 0) return;
    const DataFile& file = files[next_file_ - 1];
    records_->end(next_file_ - 1, file.first_row + file.num_rows);
  };
  while (next_file_ < files.size() && files[next_file_].was_opened() &&
         files[next_file_].first_row < end_row) {
    end_file();
    records_->begin(next_file_, files[next_file_].first_row);
    ++next_file_;
  }
  if (end_row == INT64_MAX) end_file();
}

ReadStats ParsedRows::stats() const {
  const MutexLock lock(mutex_);
  return parsed_ ? parsed_->stats() : counts_.stats(bytes_read_, rows_read_);
}

void ParsedRows::close() {
  const MutexLock lock(mutex_);
  closed_ = true;
  if (parsed_) parsed_->close();
}

KeptParsedRows::KeptParsedRows(std::unique_ptr<RowBlockSource> rows,
                               std::unique_ptr<ParsedRowWriter> writer,
                               std::int64_t max_rows,
                               std::shared_ptr<BadRowPolicy> bad_rows,
                               Finish finish)
    : rows_(std::move(rows)),
      writer_(std::move(writer)),
      max_rows_(max_rows),
      bad_rows_(std::move(bad_rows)),
      finish_(std::move(finish)) {
  bad_rows_->copy_to(&bad_);
}

KeptParsedRows::~KeptParsedRows() { bad_rows_->copy_to(nullptr); }

bool KeptParsedRows::next(RowBlock& block) {
  const bool any = rows_->next(block);
  if (writer_ && (any || !rows_->was_closed())) write(block, !any);
  return any;
}

/// The share of the pass, with what its reader has read ahead: rather too much.
double KeptParsedRows::share_read(const RowBlock& block) const {
  const ReadStats read = rows_->stats();
  if (read.bytes <= 0 || read.total_bytes <= 0) return 1.0;
  double share = static_cast<double>(read.bytes) / static_cast<double>(read.total_bytes);
  if (max_rows_ > 0 && block.num_rows > 0) {
    const auto end_row = static_cast<double>(block.row_number(block.num_rows - 1) + 1);
    share = std::max(share, end_row / static_cast<double>(max_rows_));
  }
  return std::min(share, 1.0);
}

void KeptParsedRows::write(const RowBlock& block, bool is_end) {
  try {
    writer_->set_share(is_end ? 1.0 : share_read(block));
    if (!is_end || bad_.count > 0) writer_->add(block, bad_);
    bad_ = {};
    if (!is_end) return;
    finish_(*writer_);
  } catch (const Error& error) {
    log_warning("data.cache: the rows are not cached: {}", error.what());
  }
  writer_.reset();
}

}  // namespace satrap::data
