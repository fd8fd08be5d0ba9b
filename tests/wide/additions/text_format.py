"""logfmt: lines `key=value key=value`, whose keys are the columns."""

from places import Addition, Edit, NewFile, after, before

CONFIG = "include/satrap/data/config.h"
ADDITION = Addition("text format", [
    Edit("src/data/terms/file_format.h", "  kArrow  // Arrow IPC files\n",
         "  kArrow,  // Arrow IPC files\n  kLogfmt  // key=value key=value ...\n"),
    after(CONFIG, "  kLibffm,\n", "  kLogfmt,\n"),
    after(CONFIG, '{"libffm", DataFormat::kLibffm},\n', '{"logfmt", DataFormat::kLogfmt},\n'),
    after("src/data/terms/file_format.cpp",
          '    {FileFormat::kLibffm, DataFormat::kLibffm, "libffm", {".libffm", ".ffm"}},\n',
          '    {FileFormat::kLogfmt, DataFormat::kLogfmt, "logfmt", {".logfmt"}},\n'),
    before("src/data/text/block_parser.cpp", "    default:\n", """\
    case FileFormat::kLogfmt:
      return std::make_unique<NamedParser<LogfmtFields>>(schema, pass);
""", [('#include "src/data/text/named_parser.h"\n',
       '#include "src/data/text/logfmt_fields.h"\n#include "src/data/text/named_parser.h"\n')]),
    NewFile("src/data/text/logfmt_fields.h", """\
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "satrap/data/schema.h"
#include "src/data/text/field_reader.h"
#include "src/data/text/named_columns.h"
#include "src/data/text/text_block.h"

namespace satrap::data {

/// Finds the values of columns in a line of words `key=value`, without spaces in them. The last of
/// equal keys counts.
class LogfmtFields {
 public:
  LogfmtFields(const Schema& /*schema*/, const NamedColumns& columns) {
    for (std::size_t i = 0; i < columns.names.size(); ++i) places_[columns.names[i]] = i;
  }

  static bool is_blank(const char* line) { return is_blank_line(line); }

  /// As NamedParser says.
  bool find(const char* line, const char* end, LineValues& found) {
    std::string_view rest(line, static_cast<std::size_t>(end - line));
    if (rest.ends_with('\\r')) rest.remove_suffix(1);
    while (!rest.empty()) {
      const std::string_view word = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(word.size() + 1, rest.size()));
      const std::size_t equals = word.find('=');
      if (equals == std::string_view::npos && !word.empty()) {
        fault_ = {.reason = "expected key=value", .field = word, .shows_field = true};
        return false;
      }
      const auto place = places_.find(word.substr(0, equals));
      if (word.empty() || place == places_.end()) continue;
      found.values[place->second] = {LineValues::Kind::kText, word.substr(equals + 1)};
    }
    return true;
  }
  static std::string_view id_of(std::string_view element) { return element; }
  const RowFault& fault() const { return fault_; }

 private:
  std::map<std::string, std::size_t, std::less<>> places_;
  RowFault fault_;
};

}  // namespace satrap::data
"""),
    after("src/data/terms/config.cpp", '      "files of Arrow IPC (Feather V2), as Parquet. ',
          'logfmt: lines of words `key=value`, whose keys are the "\n      "columns. '),
])
