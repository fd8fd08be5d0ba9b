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
      return is_single && column.kind == FileKind::kText ? Way::kIdOfText : Way::kGeneral;
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
    Column& column = columns_[i];
    column.values = &values[i];
    const Texts* const dictionary = column.values->dictionary;
    if (column.way != Way::kIdOfText || dictionary == nullptr) continue;
    for (std::int64_t code = std::ssize(column.meanings); code < dictionary->size(); ++code) {
      column.meanings.push_back(meaning_of(*column.feature, dictionary->at(code)));
    }
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

/// Puts what the column has in this row into the open row. False: fields_.fault() says why not.
bool ParquetParser::take(Column& column, std::size_t row) {
  if (!column.is_list && column.is_null(row)) {
    return fields_.read_value({}, true, *column.use);
  }
  switch (column.way) {
    case Way::kLabel: {
      const std::int64_t label = column.values->integers[row];
      row_.label(column.target) = static_cast<float>(label);
      return label == 0 || label == 1 || take_any(column, row);
    }
    case Way::kNumber:
      return take_number(column, row);
    case Way::kId:
      row_.put_id(column.target, static_cast<std::uint64_t>(column.values->integers[row]));
      return true;
    case Way::kIdOfText:
      return take_text(column, row);
    case Way::kIds:
      return take_integers(column, row);
    case Way::kGeneral:
      break;
  }
  return take_any(column, row);
}

bool ParquetParser::take_number(const Column& column, std::size_t row) {
  float& number = row_.number(column.target);
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
  return std::isfinite(number) || take_any(column, row);
}

bool ParquetParser::take_text(const Column& column, std::size_t row) {
  const ParquetValues& values = *column.values;
  const Meaning meaning =
      values.dictionary != nullptr
          ? column.meanings[static_cast<std::size_t>(values.codes[row])]
          : meaning_of(*column.feature, values.texts.at(static_cast<std::int64_t>(row)));
  switch (meaning.is) {
    case Meaning::Is::kId:
      row_.put_id(column.target, meaning.id);
      return true;
    case Meaning::Is::kMissing:
      fields_.add_missing(column.target);
      return true;
    default:
      return take_any(column, row);
  }
}

ParquetParser::Meaning ParquetParser::meaning_of(const FeatureConfig& feature,
                                                 std::string_view text) {
  if (fields_.is_missing(text)) return {Meaning::Is::kMissing, 0};
  std::uint64_t id = 0;
  const bool is_id = fields_.read_id(feature, text, id);
  return {is_id ? Meaning::Is::kId : Meaning::Is::kOther, id};
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
  if (!column.is_list) return fields_.read_value(text_of(column, row), false, *column.use);
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
