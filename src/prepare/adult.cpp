#include <cstddef>
#include <string_view>

#include "src/prepare/data_set.h"
#include "src/prepare/fields.h"
#include "src/prepare/file_lines.h"
#include "src/prepare/parts.h"

namespace satrap::prepare {
namespace {

constexpr std::size_t kAdultColumns = 15;

}  // namespace

/// Rows stay as they are, without the comment at the beginning of adult.test.
void prepare_adult(Workspace& workspace, const std::vector<std::string>& paths) {
  const std::string& train = paths.front();
  FileLines source(paths);
  write_parts(workspace, source,
              [&](const LineBlock& block, std::map<std::string, std::string>& rows) {
                std::vector<std::string_view> fields;
                block.for_each([&](std::string_view line, std::int64_t i) {
                  if (line.starts_with('|')) return;
                  split_fields(line, ",", fields);
                  check_num_fields(fields, kAdultColumns, block.place(i));
                  rows[block.file == train ? "train" : "test"].append(line).push_back('\n');
                });
              });
}

}  // namespace satrap::prepare
