#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <string_view>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "satrap/core/text.h"
#include "satrap/data/text_lines.h"
#include "src/prepare/data_set.h"
#include "src/prepare/fields.h"
#include "src/prepare/file_lines.h"
#include "src/prepare/parts.h"

namespace satrap::prepare {
namespace {

constexpr std::int64_t kUsageLines = 8192;
constexpr double kTestFraction = 0.2;
constexpr std::array<std::string_view, 10> kContext = {
    "user",     "item", "daytime", "weekday", "isweekend",
    "homework", "cost", "weather", "country", "city"};

/// The published file has tabs, copies have commas.
std::string delimiter_of(const std::string& path) {
  data::TextLines lines(path);
  std::string_view line;
  lines.next(line);
  return line.find('\t') != std::string_view::npos ? "\t" : ",";
}

/// As data.eval {fraction: 0.2, by: hash} chooses rows.
bool is_test(std::int64_t row) {
  const double share = std::ldexp(static_cast<double>(hash_bytes(std::to_string(row))), -64);
  return share < kTestFraction;
}

double count_field(std::string_view field, const std::string& place) {
  const std::optional<double> number = parse_number<double>(field);
  if (number && std::isfinite(*number)) return *number;
  throw Error(ErrorCode::kInvalidData,
              concat(place, ": cnt must be a number, got '", printable(field), "'"));
}

/// The median of the training rows' counts; found once.
double median_count(Workspace& workspace,
                    const std::string& path,
                    const std::string& delimiter,
                    const Header& header) {
  const std::string stage = "median";
  if (workspace.stage(stage) == nullptr) {
    FileLines source({path}, 1);
    LineBlock block;
    std::vector<std::string_view> fields;
    std::map<double, std::int64_t> rows_of;  // few numbers occur
    std::int64_t rows = 0;
    while (source.next(block, kUsageLines)) {
      block.for_each([&](std::string_view line, std::int64_t i) {
        if (is_test(block.first_row + i)) return;
        split_fields(line, delimiter, fields);
        check_num_fields(fields, header.size(), block.place(i));
        ++rows_of[count_field(fields[header.at("cnt")], block.place(i))];
        ++rows;
      });
    }
    double median = 0.0;
    std::int64_t below = 0;
    for (const auto& [count, number] : rows_of) {
      median = count;
      below += number;
      if (2 * below >= rows) break;
    }
    workspace.finish_stage(stage, {{"cnt", median}});
  }
  return workspace.stage(stage)->at("cnt").get<double>();
}

}  // namespace

void prepare_frappe(Workspace& workspace, const std::vector<std::string>& paths) {
  const std::string& path = paths.front();
  const std::string delimiter = delimiter_of(path);
  const Header header(path, delimiter);
  const double median = median_count(workspace, path, delimiter, header);
  FileLines source(paths, 1);
  write_parts(workspace, source,
              [&](const LineBlock& block, std::map<std::string, std::string>& rows) {
                std::vector<std::string_view> fields, row;
                block.for_each([&](std::string_view line, std::int64_t i) {
                  split_fields(line, delimiter, fields);
                  check_num_fields(fields, header.size(), block.place(i));
                  const double count = count_field(fields[header.at("cnt")], block.place(i));
                  row = {count > median ? "1" : "0"};
                  for (const std::string_view column : kContext) {
                    row.push_back(header.has(column) ? fields[header.at(column)] : "");
                  }
                  append_row(rows[is_test(block.first_row + i) ? "test" : "train"], row);
                });
              });
}

}  // namespace satrap::prepare
