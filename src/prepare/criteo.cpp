#include <cstddef>
#include <string_view>

#include "satrap/core/json.h"
#include "src/prepare/data_set.h"
#include "src/prepare/fields.h"
#include "src/prepare/file_lines.h"
#include "src/prepare/parts.h"

namespace satrap::prepare {
namespace {

constexpr std::size_t kCriteoColumns = 40;
constexpr std::int64_t kCriteoDays = 7;  // of Kaggle's file, in the order of time
constexpr std::int64_t kCountedLines = 65536;

/// Number of rows of a file; counted once.
std::int64_t count_rows(Workspace& workspace, const std::string& path) {
  const std::string stage = "count";
  if (workspace.stage(stage) == nullptr) {
    FileLines source({path});
    LineBlock block;
    std::int64_t rows = 0;
    while (source.next(block, kCountedLines)) {
      rows += block.num_lines;
      workspace.show("counting rows", source, rows);
    }
    workspace.finish_stage(stage, {{"rows", rows}});
  }
  return integer_at(*workspace.stage(stage), "rows");
}

/// Rows stay as they are; `split_of` gives the split of each by its number.
template <class SplitOf>
Convert as_published(SplitOf split_of) {
  return [split_of](const LineBlock& block, std::map<std::string, std::string>& rows) {
    block.for_each([&](std::string_view line, std::int64_t i) {
      std::vector<std::string_view> fields;
      split_fields(line, "\t", fields);
      check_num_fields(fields, kCriteoColumns, block.place(i));
      rows[split_of(block, i)].append(line).push_back('\n');
    });
  };
}

}  // namespace

void prepare_criteo(Workspace& workspace, const std::vector<std::string>& paths) {
  const std::int64_t rows = count_rows(workspace, paths.front());
  const std::int64_t first_of_last_day = rows * (kCriteoDays - 1) / kCriteoDays;
  FileLines source(paths);
  write_parts(workspace, source,
              as_published([first_of_last_day](const LineBlock& block, std::int64_t i) {
                return block.first_row + i < first_of_last_day ? "train" : "test";
              }));
}

void prepare_criteo_1tb(Workspace& workspace, const std::vector<std::string>& paths) {
  const std::string& last_day = paths.back();
  const std::int64_t rows = count_rows(workspace, last_day);
  const std::int64_t last_of_test = (rows + 1) / 2;  // a line number
  FileLines source(paths);
  write_parts(workspace, source,
              as_published([&last_day, last_of_test](const LineBlock& block, std::int64_t i) {
                if (block.file != last_day) return "train";
                return block.first_line + i <= last_of_test ? "test" : "validation";
              }));
}

}  // namespace satrap::prepare
