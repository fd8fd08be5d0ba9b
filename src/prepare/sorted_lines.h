#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "satrap/data/text_lines.h"
#include "src/prepare/line_block.h"
#include "src/prepare/workspace.h"

namespace satrap::prepare {

/// The order of lines: the first number, then the second, then the order in which they came.
struct SortKey {
  std::int64_t first = 0, second = 0;
  friend auto operator<=>(const SortKey&, const SortKey&) = default;
};

/// Sorts lines that do not fit memory: add() them all, finish(), then read them by SortedLines. A
/// sixteenth of request().memory_bytes becomes a run, a file of sorted lines. A run that a killed
/// preparation has written is not written again, and a sorter that it has finished needs no lines.
class LineSorter {
 public:
  /// `max_runs`: what a merge can have open. Throws Error(kInvalidConfig) in add() and finish() if
  /// more would be needed.
  LineSorter(Workspace& workspace, std::string name, std::int64_t max_runs = 900);

  bool is_finished() const { return workspace_.stage(name_) != nullptr; }

  /// `text` has no '\n'.
  void add(const SortKey& key, std::string_view text);

  /// Stores `found` with the stage, beside the numbers of runs and lines.
  void finish(nlohmann::ordered_json found = nlohmann::ordered_json::object());

  const nlohmann::ordered_json& found() const { return *workspace_.stage(name_); }
  std::int64_t num_lines() const;
  std::vector<std::string> run_paths() const;

 private:
  struct Entry {
    SortKey key;
    std::size_t begin, size;  // in the text
  };
  struct Run {
    std::string text;
    std::vector<Entry> entries;
    std::int64_t number = 0;
  };

  std::string run_path(std::int64_t number) const;
  void write(Run& run) const;
  void write_runs();

  Workspace& workspace_;
  const std::string name_;
  const std::size_t run_bytes_;
  const std::int64_t max_runs_;
  std::vector<Run> runs_;  // in memory
  std::int64_t num_runs_ = 0, num_lines_ = 0;
};

/// The lines of a finished sorter in their order.
class SortedLines {
 public:
  explicit SortedLines(const LineSorter& sorter);

  /// The text is valid until the next call; false at the end.
  bool next(SortKey& key, std::string_view& text);

 private:
  struct Head {
    SortKey key;
    std::size_t run;
  };
  static bool is_later(const Head& a, const Head& b);
  void push_head(std::size_t run);

  std::vector<std::unique_ptr<data::TextLines>> runs_;
  std::vector<std::string_view> texts_;  // of the heads
  std::vector<Head> heap_;               // the next line of each run, the first one on top
  std::size_t taken_ = 0;                // whose line was returned
  bool has_taken_ = false;
};

/// Sorted lines as a source of rows "first<TAB>text".
class SortedSource : public LineSource {
 public:
  explicit SortedSource(const LineSorter& sorter);
  bool next(LineBlock& block, std::int64_t max_lines) override;
  double progress() const override;

 private:
  SortedLines lines_;
  const std::int64_t num_lines_;
  std::int64_t next_row_ = 0;
};

}  // namespace satrap::prepare
