#include "src/data/parquet_parser.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "satrap/core/error.h"
#include "src/data/row_part.h"

namespace satrap::data {
namespace {

using FileKind = ParquetFile::Kind;

bool is_integer(FileKind kind) { return kind == FileKind::kInteger || kind == FileKind::kUnsigned; }

}  // namespace

ParquetParser::ParquetParser(const Schema& schema, const RowPass& pass)
    : schema_(schema), pass_(pass), row_(schema), fields_(schema, row_, pass.texts) {}

void ParquetParser::begin(const ParquetGroup& group) {
  group_ = group;
  columns_.clear();
  dividing_ = -1;
  const MappedParquet& source = *group.source;
  for (std::size_t i = 0; i < source.columns.size(); ++i) {
    const ParquetFile::Column& column = source.column(i);
    const ColumnMap::Column& use = source.use(i);
    if (static_cast<std::int64_t>(source.columns[i]) == source.map.dividing_column()) {
      dividing_ = static_cast<std::int64_t>(i);
    }
    const std::int64_t target = use.consumers.empty() ? 0 : use.consumers.front().target;
    const bool is_of_ids =
        !use.consumers.empty() && use.consumers.front().kind == ColumnMap::Kind::kInt;
    columns_.push_back(
        {.use = &use,
         .kind = column.kind,
         .is_list = column.is_list,
         .way = way_of(use, column),
         .target = target,
         .feature =
             is_of_ids ? &schema_.id_columns[static_cast<std::size_t>(target)].config : nullptr});
  }
}

ParquetParser::Way ParquetParser::way_of(const ColumnMap::Column& use,
                                         const ParquetFile::Column& column) const {
  if (use.consumers.size() != 1) return Way::kGeneral;
  const ColumnMap::Consumer& consumer = use.consumers.front();
  const auto target = static_cast<std::size_t>(consumer.target);
  const bool has_tokens = !schema_.text.missing.empty();  // of which one may look like a number
  const bool is_number = column.kind != FileKind::kText && !has_tokens;
  switch (consumer.kind) {
    case ColumnMap::Kind::kLabel: {
      const LabelConfig& label = schema_.labels[target].source;
      const bool is_plain = label.positive.empty() && label.threshold.empty();
      return is_plain && is_number && is_integer(column.kind) ? Way::kLabel : Way::kGeneral;
    }
    case ColumnMap::Kind::kNumber:
      return is_number ? Way::kNumber : Way::kGeneral;
    case ColumnMap::Kind::kInt: {
      const FeatureConfig& feature = schema_.id_columns[target].config;
      if (!feature.weight_separator.empty() || !feature.columns.empty()) return Way::kGeneral;
      if (is_number && feature.type == "int") return column.is_list ? Way::kIds : Way::kId;
      const bool is_single = feature.separator.empty() && !column.is_list;
      return is_single && column.kind == FileKind::kText ? Way::kId : Way::kGeneral;
    }
    default:
      return Way::kGeneral;
  }
}

void ParquetParser::parse(std::span<const ParquetValues> values,
                          std::int64_t first_row,
                          std::int64_t num_rows,
                          RowBlock& rows,
                          BadRows& bad) {
  bad.count = 0;
  bad.messages.clear();
  bad.reasons.clear();
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    columns_[i].values = &values[i];
    if (columns_[i].way == Way::kId) find_ids(columns_[i], static_cast<std::size_t>(num_rows));
  }
  row_.begin(rows, num_rows);
  for (std::int64_t at = 0; at < num_rows; ++at) {
    const std::int64_t row = first_row + at;
    const auto place = static_cast<std::size_t>(at);
    if (!is_wanted(row, place)) continue;
    if (parse_row(place)) {
      row_.end_row(row);
      continue;
    }
    row_.drop_row();
    report(row, bad);
    if (pass_.keeps_every_line) row_.add_row_without_values(row, kept_of(place));
  }
  row_.finish();
}

bool ParquetParser::is_wanted(std::int64_t row, std::size_t at) {
  if (row < pass_.first_row || (pass_.max_rows > 0 && row >= pass_.max_rows)) return false;
  if (!pass_.split.owns(row)) return false;
  if (pass_.part == nullptr) return true;
  if (dividing_ >= 0 && !columns_[static_cast<std::size_t>(dividing_)].is_null(at)) {
    const std::string_view text = text_of(columns_[static_cast<std::size_t>(dividing_)], at);
    if (!fields_.is_missing(text)) return pass_.part->has(text);
  }
  const auto end = std::to_chars(digits_.data(), digits_.data() + digits_.size(), row).ptr;
  return pass_.part->has({digits_.data(), end});
}

bool ParquetParser::parse_row(std::size_t row) {
  return std::ranges::all_of(columns_, [&](Column& column) { return take(column, row); });
}

/// The ids of a whole column: a row at a time each look into a dictionary would wait for memory.
void ParquetParser::find_ids(Column& column, std::size_t num_rows) {
  const ParquetValues& values = *column.values;
  Ids& rows = column.rows;
  rows.resize(num_rows);
  if (column.kind != FileKind::kText) {
    std::ranges::copy(values.integers, rows.ids.begin());
    std::ranges::fill(rows.what, Is::kId);
  } else if (values.dictionary == nullptr) {
    for (std::size_t r = 0; r < num_rows; ++r) {
      find_id(*column.feature, values.texts.at(static_cast<std::int64_t>(r)), r, rows);
    }
  } else {
    const auto num_entries = static_cast<std::size_t>(values.dictionary->size());
    std::size_t entry = column.entries.ids.size();
    column.entries.resize(num_entries);
    for (; entry < num_entries; ++entry) {
      const std::string_view text = values.dictionary->at(static_cast<std::int64_t>(entry));
      find_id(*column.feature, text, entry, column.entries);
    }
    for (std::size_t r = 0; r < num_rows && num_entries > 0; ++r) {
      const auto code = static_cast<std::size_t>(values.codes[r]);
      rows.ids[r] = column.entries.ids[code];
      rows.what[r] = column.entries.what[code];
    }
  }
  for (std::size_t r = 0; r < values.presence.size(); ++r) {
    if (values.presence[r] == 0) rows.what[r] = Is::kMissing;
  }
}

void ParquetParser::find_id(const FeatureConfig& feature,
                            std::string_view text,
                            std::size_t i,
                            Ids& ids) {
  std::uint64_t id = 0;
  const Is is = fields_.is_missing(text)             ? Is::kMissing
                : fields_.read_id(feature, text, id) ? Is::kId
                                                     : Is::kUnusual;
  ids.set(i, is, id);
}

void ParquetParser::Ids::resize(std::size_t size) {
  ids.resize(size);
  what.resize(size);
}

void ParquetParser::Ids::set(std::size_t i, Is is, std::uint64_t id) {
  ids[i] = id;
  what[i] = is;
}

/// Puts what the column has in this row into the open row. False: fields_.fault() says why not.
bool ParquetParser::take(Column& column, std::size_t row) {
  switch (column.way) {
    case Way::kId:
      if (column.rows.what[row] == Is::kId) {
        row_.put_id(column.target, column.rows.ids[row]);
        return true;
      }
      if (column.rows.what[row] == Is::kUnusual) break;
      fields_.add_missing(column.target);
      return true;
    case Way::kNumber:
      return take_number(column, row);
    case Way::kLabel: {
      if (column.is_null(row)) break;
      const std::int64_t label = column.values->integers[row];
      row_.label(column.target) = static_cast<float>(label);
      return label == 0 || label == 1 || take_any(column, row);
    }
    case Way::kIds:
      return take_integers(column, row);
    case Way::kGeneral:
      break;
  }
  return take_any(column, row);
}

bool ParquetParser::take_number(const Column& column, std::size_t row) {
  float& number = row_.number(column.target);
  if (column.is_null(row)) {
    number = kMissingNumber;
    return true;
  }
  switch (column.kind) {
    case FileKind::kInteger:  // through double, as a text would
      number = static_cast<float>(static_cast<double>(column.values->integers[row]));
      return true;
    case FileKind::kUnsigned:
      number = static_cast<float>(
          static_cast<double>(static_cast<std::uint64_t>(column.values->integers[row])));
      return true;
    case FileKind::kFloat:
      number = column.values->floats[row];
      break;
    default:
      number = static_cast<float>(column.values->doubles[row]);
      break;
  }
  return !std::isinf(number) || take_any(column, row);  // not a number: missing
}

/// A list of integers that are the ids.
bool ParquetParser::take_integers(const Column& column, std::size_t row) {
  const ParquetValues& values = *column.values;
  if (!values.presence.empty()) return take_any(column, row);
  std::int64_t begin = row == 0 ? 0 : values.ends[row - 1];
  std::int64_t end = values.ends[row];
  if (column.feature->max_length > 0 && end - begin > column.feature->max_length) {
    if (column.feature->keep == "last") {
      begin = end - column.feature->max_length;
    } else {
      end = begin + column.feature->max_length;
    }
  }
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t id = values.integers[static_cast<std::size_t>(i)];
    row_.push_id(column.target, static_cast<std::uint64_t>(id), 1.0F);
  }
  if (begin == end) fields_.add_missing(column.target);
  return true;
}

/// By way of texts.
bool ParquetParser::take_any(const Column& column, std::size_t row) {
  if (!column.is_list) {
    const bool is_null = column.is_null(row);
    return fields_.read_value(is_null ? std::string_view() : text_of(column, row), is_null,
                              *column.use);
  }
  const std::int64_t begin = row == 0 ? 0 : column.values->ends[row - 1];
  const std::int64_t end = column.values->ends[row];
  for (const ColumnMap::Consumer& consumer : column.use->consumers) {
    std::int64_t i = begin;
    const auto next = [&](std::string_view& element) {
      while (i < end && column.is_null(static_cast<std::size_t>(i))) ++i;
      if (i == end) return false;
      element = text_of(column, static_cast<std::size_t>(i++));
      return true;
    };
    if (!fields_.read_list(*column.use, consumer.target, next)) return false;
  }
  return true;
}

/// Valid until the next call.
std::string_view ParquetParser::text_of(const Column& column, std::size_t element) {
  return data::text_of(*column.values, column.kind, element, digits_);
}

/// The texts of the kept columns of a bad row.
std::vector<std::string> ParquetParser::kept_of(std::size_t row) {
  std::vector<std::string> texts(schema_.kept.size());
  for (const Column& column : columns_) {
    for (const ColumnMap::Consumer& consumer : column.use->consumers) {
      if (consumer.kind != ColumnMap::Kind::kText || column.is_null(row)) continue;
      texts[static_cast<std::size_t>(consumer.target)] = text_of(column, row);
    }
  }
  return texts;
}

void ParquetParser::report(std::int64_t row, BadRows& bad) const {
  const RowFault& fault = fields_.fault();
  ++bad.count;
  ++bad.reasons[fault.kind()];
  if (bad.messages.size() >= BadRows::kMaxMessages) return;
  const std::int64_t row_of_file = group_.rows_before + row - group_.first_row + 1;
  bad.messages.push_back(concat(group_.source->path, ": row ", row_of_file, ": ", fault.text()));
}

}  // namespace satrap::data
