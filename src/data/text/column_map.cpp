#include "src/data/text/column_map.h"

#include <algorithm>
#include <unordered_map>

#include "satrap/core/config.h"
#include "satrap/core/error.h"
#include "satrap/core/text.h"

namespace satrap::data {
namespace {

/// Whether training alone needs the column: it has labels or weights.
bool is_of_label(const Schema& schema, const std::string& column) {
  return column == schema.text.weight ||
         std::ranges::any_of(schema.labels, [&](const NamedLabelConfig& label) {
           return label.source.column == column;
         });
}

bool is_of_input(const Schema& schema, const std::string& column) {
  const auto reads = [&](const Schema::IdColumn& ids) {
    return std::ranges::count(columns_of(ids.config), column) > 0;
  };
  return std::ranges::count(schema.raw_numeric, column, &Schema::RawNumber::column) > 0 ||
         std::ranges::count(schema.kept, column) > 0 ||
         std::ranges::any_of(schema.id_columns, reads);
}

/// The part of `columns` that a line with this many fields has. Data for prediction may lack the
/// columns that only labels use, such as Criteo's test file.
std::vector<std::string> columns_of(const Schema& schema,
                                    std::size_t num_fields,
                                    const std::string& place) {
  const std::vector<std::string>& all = schema.text.columns;
  if (schema.labelled || num_fields == all.size()) return all;
  std::vector<std::string> inputs = all;
  std::erase_if(inputs, [&](const std::string& column) {
    return is_of_label(schema, column) && !is_of_input(schema, column);
  });
  if (num_fields == inputs.size()) return inputs;
  throw Error(
      ErrorCode::kInvalidConfig,
      concat(place, ": ", num_fields, num_fields == 1 ? " column" : " columns", "; the schema has ",
             all.size(), ", or ", inputs.size(), " without those of all labels",
             schema.text.weight.empty() ? "" : " and of the weight"));
}

std::vector<std::string> column_names(const Schema& schema,
                                      std::string_view first_line,
                                      const std::string& place) {
  std::vector<std::string> names = split_line(schema.text, first_line);
  if (!schema.text.columns.empty()) return columns_of(schema, names.size(), place);
  if (!schema.text.header) {
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = std::to_string(i);
  }
  return names;
}

/// Finds columns by name, with helpful errors.
class ColumnFinder {
 public:
  /// `holder`: what has the names, the header or the file.
  ColumnFinder(const std::vector<std::string>& names,
               const SchemaConfig& text,
               const std::string& place,
               const char* holder)
      : names_(names), text_(text), place_(place), holder_(holder) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto [named, is_first] = places_.try_emplace(names[i], Place{.at = i});
      named->second.is_twice = !is_first;
    }
  }

  std::size_t find(const std::string& column, const std::string& user) const {
    const auto found = places_.find(column);
    if (found == places_.end()) fail(column, user);
    if (found->second.is_twice) {
      throw Error(ErrorCode::kInvalidConfig,
                  printable(concat(place_, ": two columns are named '", column, "', which ", user,
                                   " reads")));
    }
    return found->second.at;
  }

 private:
  struct Place {
    std::size_t at = 0;
    bool is_twice = false;
  };

  [[noreturn]] void fail(const std::string& column, const std::string& user) const {
    if (!text_.header && text_.columns.empty()) {
      throw Error(ErrorCode::kInvalidConfig,
                  concat(place_, ": ", user, " reads column '", column,
                         "'; without a header and without `columns`, columns are numbered from 0 ",
                         "and this file has 0 to ", names_.size() - 1));
    }
    constexpr std::size_t kShownBytes = 40;
    std::string message =
        concat(place_, ": there is no column '", column, "', which ", user, " reads");
    const std::string guess = nearest(column, names_);
    if (!guess.empty()) {
      message += concat("; did you mean '", guess, "'?");
    } else if (text_.header && !names_.empty()) {
      message += concat("; the ", holder_, " has ", names_.size(), " columns, the first is '",
                        names_.front().substr(0, kShownBytes), "'");
    }
    throw Error(ErrorCode::kInvalidConfig, printable(message));
  }

  const std::vector<std::string>& names_;
  const SchemaConfig& text_;
  const std::string& place_;
  const char* const holder_;
  std::unordered_map<std::string_view, Place> places_;
};

/// The parser of a column with a single consumer.
ColumnMap::Kind fast_kind(const Schema& schema, const ColumnMap::Consumer& consumer) {
  using Kind = ColumnMap::Kind;
  if (consumer.kind == Kind::kLabel) {
    const LabelConfig& label = schema.labels[static_cast<std::size_t>(consumer.target)].source;
    return label.is_plain() ? Kind::kLabel : Kind::kGeneral;
  }
  if (consumer.kind == Kind::kNumber) {
    return consumer.target == schema.weight ? Kind::kGeneral : Kind::kNumber;
  }
  if (consumer.kind == Kind::kText || consumer.kind == Kind::kTime) return Kind::kGeneral;
  const FeatureConfig& feature =
      schema.id_columns[static_cast<std::size_t>(consumer.target)].config;
  const bool single =
      feature.separator.empty() && feature.weight_separator.empty() && feature.columns.empty();
  if (single && feature.type == IdType::kInt) return Kind::kInt;
  if (single && feature.type == IdType::kHex) return Kind::kHex;
  return Kind::kGeneral;
}

}  // namespace

ColumnMap::ColumnMap(const Schema& schema, std::string_view first_line, const std::string& place) {
  find(schema, column_names(schema, first_line, place), place, "header");
}

ColumnMap::ColumnMap(const Schema& schema,
                     const std::vector<std::string>& names,
                     const std::string& place) {
  Schema named = schema;  // by the file, whatever the schema says of text
  named.text.header = true;
  find(named, names, place, "file");
}

void ColumnMap::find(const Schema& schema,
                     const std::vector<std::string>& names,
                     const std::string& place,
                     const char* holder) {
  columns_.resize(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) columns_[i].name = names[i];

  const ColumnFinder finder(names, schema.text, place, holder);
  const ColumnRead* before = nullptr;  // of the same feature, if it has several columns
  std::size_t last = 0;
  const std::vector<ColumnRead> reads = reads_of(schema);
  for (const ColumnRead& read : reads) {
    const std::size_t at = finder.find(read.column, read.reader);
    columns_[at].consumers.push_back(read.consumer);
    const bool is_next = before != nullptr && read.consumer.kind == Kind::kInt &&
                         before->consumer.kind == Kind::kInt &&
                         before->consumer.target == read.consumer.target;
    if (is_next && at <= last) {
      throw Error(ErrorCode::kInvalidConfig,
                  printable(concat(place, ": ", read.reader, " reads column '", read.column,
                                   "' after '", before->column,
                                   "', which does not come before it in the file; list "
                                   "`columns` in the file's order")));
    }
    before = &read;
    last = at;
  }

  for (const Schema::SelectingColumn& selecting : schema.selecting) {
    selecting_.push_back(finder.find(selecting.column, selecting.reader));
  }

  // The fast parsers know only the empty token: a token such as "-1" needs the general parser.
  const bool tokens = std::any_of(
      schema.text.missing.begin(), schema.text.missing.end(), [](const std::string& token) {
        return token.find_first_not_of("0123456789abcdefABCDEF+-") == std::string::npos;
      });
  for (Column& column : columns_) {
    if (column.consumers.empty()) continue;
    column.target = column.consumers.front().target;
    column.kind = column.consumers.size() == 1 && !tokens
                      ? fast_kind(schema, column.consumers.front())
                      : Kind::kGeneral;
  }
}

std::vector<ColumnRead> reads_of(const Schema& schema) {
  using Kind = ColumnMap::Kind;
  std::vector<ColumnRead> reads;
  for (std::size_t i = 0; schema.labelled && i < schema.labels.size(); ++i) {
    const NamedLabelConfig& label = schema.labels[i];
    reads.push_back({label.source.column,
                     schema.labels.size() == 1 ? "the label" : concat("label '", label.name, "'"),
                     {Kind::kLabel, static_cast<std::int64_t>(i)}});
  }
  for (std::size_t i = 0; i < schema.raw_numeric.size(); ++i) {
    const auto& [column, is_time] = schema.raw_numeric[i];
    const auto target = static_cast<std::int64_t>(i);
    reads.push_back({column,
                     is_time                   ? "a time"
                     : target == schema.weight ? "data.schema.weight"
                                               : "a number",
                     {is_time ? Kind::kTime : Kind::kNumber, target}});
  }
  for (std::size_t i = 0; i < schema.id_columns.size(); ++i) {
    const FeatureConfig& feature = schema.id_columns[i].config;
    const bool groups = schema.id_columns[i].feature == Schema::kGroups;
    const std::string user = groups ? "data.group_by" : concat("feature '", feature.name, "'");
    for (const std::string& column : columns_of(feature)) {
      reads.push_back({column, user, {Kind::kInt, static_cast<std::int64_t>(i)}});
    }
  }
  for (std::size_t i = 0; i < schema.kept.size(); ++i) {
    reads.push_back({schema.kept[i], schema.kept_by, {Kind::kText, static_cast<std::int64_t>(i)}});
  }
  return reads;
}

std::vector<std::string> split_line(const SchemaConfig& text, std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  const char delimiter = text.delimiter.front();
  const char quote = text.quote.empty() ? '\0' : text.quote.front();
  const auto blank = [&](char c) { return text.trim && (c == ' ' || c == '\t') && c != delimiter; };
  std::vector<std::string> fields;
  std::size_t at = 0;
  while (true) {
    while (at < line.size() && blank(line[at])) ++at;
    std::string field;
    if (quote != '\0' && at < line.size() && line[at] == quote) {
      for (++at; at < line.size(); ++at) {
        if (line[at] == quote) {
          if (at + 1 == line.size() || line[at + 1] != quote) break;
          ++at;
        }
        field += line[at];
      }
      at = std::min(line.find(delimiter, at), line.size());
    } else {
      const std::size_t end = std::min(line.find(delimiter, at), line.size());
      field = line.substr(at, end - at);
      while (!field.empty() && blank(field.back())) field.pop_back();
      at = end;
    }
    fields.push_back(std::move(field));
    if (at == line.size()) return fields;
    ++at;
  }
}

}  // namespace satrap::data
