#include "src/prepare/file_lines.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

namespace satrap::prepare {

FileLines::FileLines(std::vector<std::string> paths, std::int64_t skipped)
    : paths_(std::move(paths)), skipped_(skipped) {
  for (const std::string& path : paths_) {
    total_bytes_ += static_cast<std::int64_t>(std::filesystem::file_size(path));
  }
}

bool FileLines::next(LineBlock& block, std::int64_t max_lines) {
  block.text.clear();
  block.num_lines = 0;
  block.first_row = next_row_;
  std::string_view line;
  while (block.num_lines == 0) {
    if (lines_ == nullptr) {
      if (next_path_ == paths_.size()) return false;
      lines_ = std::make_unique<data::TextLines>(paths_[next_path_++]);
      for (std::int64_t i = 0; i < skipped_ && lines_->next(line); ++i) continue;
    }
    while (block.num_lines < max_lines) {
      if (!lines_->next(line)) {
        finished_bytes_ += lines_->bytes_read();
        lines_ = nullptr;
        break;
      }
      if (line.empty()) {
        if (block.num_lines == 0) continue;
        break;  // the lines of a block are consecutive
      }
      if (block.num_lines == 0) block.first_line = lines_->line_number();
      block.text.append(line).push_back('\n');
      ++block.num_lines;
    }
  }
  block.file = paths_[next_path_ - 1];
  next_row_ += block.num_lines;
  return true;
}

double FileLines::progress() const {
  const std::int64_t read = finished_bytes_ + (lines_ == nullptr ? 0 : lines_->bytes_read());
  return total_bytes_ == 0
             ? 1.0
             : std::min(1.0, static_cast<double>(read) / static_cast<double>(total_bytes_));
}

}  // namespace satrap::prepare
