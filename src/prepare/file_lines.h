#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "satrap/data/text_lines.h"
#include "src/prepare/line_block.h"

namespace satrap::prepare {

/// The lines of published files, one after the other, without blank lines.
class FileLines : public LineSource {
 public:
  /// `skipped`: lines at the beginning of each file that are no rows, such as a header.
  explicit FileLines(std::vector<std::string> paths, std::int64_t skipped = 0);

  bool next(LineBlock& block, std::int64_t max_lines) override;
  double progress() const override;

 private:
  const std::vector<std::string> paths_;
  const std::int64_t skipped_;
  std::int64_t total_bytes_ = 0, finished_bytes_ = 0;
  std::size_t next_path_ = 0;
  std::unique_ptr<data::TextLines> lines_;  // of the current file; null: open the next one
  std::int64_t next_row_ = 0;
};

}  // namespace satrap::prepare
