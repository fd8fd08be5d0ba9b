#include "src/data/columnar/parquet_parser.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "satrap/core/error.h"
#include "src/data/rows/field_parse.h"
#include "src/data/rows/row_part.h"

namespace satrap::data {
namespace {

using FileKind = ParquetFile::Kind;

/// Whether a column has its values as integers, which are no times.
bool is_integer(FileKind kind) {
  return kind == FileKind::kTruth || kind == FileKind::kInteger || kind == FileKind::kUnsigned;
}

/// The numbers as a text of them would be read.
void find_numbers(const ParquetValues& values,
                  FileKind kind,
                  std::size_t num_rows,
                  std::vector<double>& numbers) {
  numbers.resize(num_rows);
  const auto convert = [&](const auto& elements, auto to_double) {
    for (std::size_t r = 0; r < num_rows; ++r) {
      numbers[r] = to_double(elements[r]) + 0.0;  // -0 is 0
    }
  };
  switch (kind) {
    case FileKind::kTruth:
    case FileKind::kInteger:
      convert(values.integers, [](std::int64_t x) { return static_cast<double>(x); });
      break;
    case FileKind::kUnsigned:
      convert(values.integers,
              [](std::int64_t x) { return static_cast<double>(static_cast<std::uint64_t>(x)); });
      break;
    case FileKind::kFloat:
      convert(values.floats, decimal_of);
      break;
    default:
      convert(values.doubles, [](double x) { return x; });
      break;
  }
  for (std::size_t r = 0; r < values.presence.size(); ++r) {
    numbers[r] = values.presence[r] != 0 ? numbers[r] : kMissingNumber;
  }
}

/// Whether it is a time whose text is a number that is none: outside of the years 0 to 9999.
bool is_far_time(FileKind kind, std::string_view text) {
  return ParquetFile::is_of_time(kind) && is_number(text);
}

}  // namespace

ParquetParser::ParquetParser(const Schema& schema, const RowPass& pass)
    : schema_(schema), pass_(pass), row_(schema), fields_(schema, row_, false, pass.texts) {}

void ParquetParser::begin(const ParquetGroup& group) {
  group_ = group;
  columns_.clear();
  const MappedParquet& source = *group.source;
  for (std::size_t i = 0; i < source.columns.size(); ++i) {
    const ParquetFile::Column& column = source.column(i);
    const ColumnMap::Column& use = source.use(i);
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
  selecting_.clear();
  for (const std::size_t column : source.map.selecting()) {
    const auto at = std::ranges::lower_bound(source.columns, column);
    selecting_.push_back(static_cast<std::size_t>(at - source.columns.begin()));
  }
}

ParquetParser::Way ParquetParser::way_of(const ColumnMap::Column& use,
                                         const ParquetFile::Column& column) const {
  if (use.consumers.size() != 1) return Way::kGeneral;
  const ColumnMap::Consumer& consumer = use.consumers.front();
  const auto target = static_cast<std::size_t>(consumer.target);
  // A text that means missing may look like a number.
  const bool is_number = column.kind != FileKind::kText && !fields_.has_missing_texts();
  switch (consumer.kind) {
    case ColumnMap::Kind::kLabel: {
      const LabelConfig& label = schema_.labels[target].source;
      if (label.is_number() && is_number && !ParquetFile::is_of_time(column.kind)) {
        return Way::kNumberLabel;
      }
      return label.is_plain() && is_number && is_integer(column.kind) ? Way::kLabel : Way::kGeneral;
    }
    case ColumnMap::Kind::kNumber:
      return is_number && consumer.target != schema_.weight ? Way::kNumber : Way::kGeneral;
    case ColumnMap::Kind::kTime:
      return Way::kTime;
    case ColumnMap::Kind::kInt: {
      const FeatureConfig& feature = schema_.id_columns[target].config;
      if (!feature.weight_separator.empty() || !feature.columns.empty()) return Way::kGeneral;
      const bool keeps_texts = column.kind == FileKind::kUnsigned && pass_.texts != nullptr;
      if (is_number && is_integer(column.kind) && feature.type == IdType::kInt && !keeps_texts) {
        return column.is_list ? Way::kIds : Way::kId;
      }
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
  bad.clear();
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    columns_[i].values = &values[i];
    prepare(columns_[i], static_cast<std::size_t>(num_rows));
  }
  select(first_row, static_cast<std::size_t>(num_rows), bad);
  row_.begin(rows, num_rows);
  if (is_usual(first_row, num_rows)) {
    put_columns(static_cast<std::size_t>(num_rows), rows);
    row_.end_rows(first_row, num_rows);
    row_.finish();
    return;
  }
  for (Column& column : columns_) column.ids.unpack();
  for (std::int64_t at = 0; at < num_rows; ++at) {
    const std::int64_t row = first_row + at;
    const auto place = static_cast<std::size_t>(at);
    if (!is_of_pass(row) || (!are_all_selected_ && !is_selected_[place])) continue;
    const bool is_good = parse_row(place);
    if (is_good && row_.is_wanted([&] { return position_of(row); })) {
      row_.end_row(row);
      continue;
    }
    row_.drop_row();
    if (is_good) {
      ++bad.left_out;
      continue;
    }
    report(row, bad);
    if (pass_.keeps_every_line) row_.add_row_without_values(row, kept_of(place));
  }
  row_.finish();
}

std::uint64_t ParquetParser::position_of(std::int64_t row) const {
  if (group_.message == nullptr) return static_cast<std::uint64_t>(row);
  return group_.message->position_of(row - group_.message->first_row);
}

bool ParquetParser::is_of_pass(std::int64_t row) const {
  return row >= pass_.first_row && (pass_.max_rows == 0 || row < pass_.max_rows) &&
         pass_.split.owns(row);
}

FieldFound ParquetParser::find_selecting(std::size_t place,
                                         std::size_t at,
                                         std::string_view& text) {
  const Column& column = columns_[selecting_[place]];
  if (column.is_null(at)) return FieldFound::kMissing;
  text = text_of(column, at);
  return fields_.is_missing(text) ? FieldFound::kMissing : FieldFound::kText;
}

/// Finds out which rows of the block are in the pass's selection.
void ParquetParser::select(std::int64_t first_row, std::size_t num_rows, BadRows& bad) {
  if (pass_.selection == nullptr) return;
  is_selected_.assign(num_rows, false);
  are_all_selected_ = true;
  for (std::size_t at = 0; at < num_rows; ++at) {
    const std::int64_t row = first_row + static_cast<std::int64_t>(at);
    if (!is_of_pass(row)) continue;
    const RowChoice choice = pass_.selection->choice_of(
        row,
        [&](std::size_t place, std::string_view& text) { return find_selecting(place, at, text); });
    is_selected_[at] = choice == RowChoice::kRead;
    are_all_selected_ = are_all_selected_ && is_selected_[at];
    bad.left_out += choice == RowChoice::kLeftOut ? 1 : 0;
  }
}

bool ParquetParser::parse_row(std::size_t row) {
  return std::ranges::all_of(columns_, [&](Column& column) { return take(column, row); }) &&
         fields_.check_row();
}

/// Finds what the values of a block stand for, a whole column at a time: with a row at a time each
/// look into a dictionary would wait for memory.
void ParquetParser::prepare(Column& column, std::size_t num_rows) {
  const ParquetValues& values = *column.values;
  column.is_usual = column.only_selects() || column.way == Way::kNumber || column.way == Way::kId;
  if (column.way == Way::kLabel) {
    column.is_usual = values.presence.empty() &&
                      std::ranges::all_of(values.integers, [](auto x) { return x == 0 || x == 1; });
  } else if (column.way == Way::kNumberLabel) {
    find_numbers(values, column.kind, num_rows, column.numbers);
    column.is_usual = std::ranges::none_of(
        column.numbers, [](double x) { return std::isnan(x) || is_too_large(x); });
  } else if (column.way == Way::kNumber) {
    find_numbers(values, column.kind, num_rows, column.numbers);
    column.is_usual = std::ranges::none_of(column.numbers, is_too_large);
  } else if (column.way == Way::kTime) {
    column.is_usual = find_times(column, num_rows);
  } else if (column.way == Way::kId) {
    column.ids.find(values, column.kind, *column.feature, num_rows, fields_);
    column.is_usual = column.ids.are_usual();
  }
}

/// By way of texts. False: some are no times.
bool ParquetParser::find_times(Column& column, std::size_t num_rows) {
  column.numbers.assign(num_rows, kMissingNumber);
  for (std::size_t r = 0; r < num_rows; ++r) {
    if (column.is_null(r)) continue;
    const std::string_view text = text_of(column, r);
    if (is_far_time(column.kind, text)) return false;
    if (!fields_.is_missing(text) && !fields_.read_time(text, column.numbers[r])) return false;
  }
  return true;
}

/// Whether all rows are of this pass, and none of them needs a look at single values.
bool ParquetParser::is_usual(std::int64_t first_row, std::int64_t num_rows) const {
  const std::int64_t end = first_row + num_rows;
  return schema_.negatives_read == 1.0 && first_row >= pass_.first_row &&
         (pass_.max_rows == 0 || end <= pass_.max_rows) && are_all_selected_ &&
         pass_.split.owns(first_row) && pass_.split.run(first_row) >= num_rows &&
         std::ranges::all_of(columns_, &Column::is_usual);
}

/// Puts the values of all rows at once, a column at a time.
void ParquetParser::put_columns(std::size_t num_rows, RowBlock& rows) {
  for (Column& column : columns_) {
    if (column.only_selects()) continue;
    const auto target = static_cast<std::size_t>(column.target);
    if (column.way == Way::kNumber || column.way == Way::kTime) {
      std::swap(rows.numeric[target], column.numbers);
    } else if (column.way == Way::kLabel) {
      const std::size_t stride = schema_.labels.size();
      for (std::size_t r = 0; r < num_rows; ++r) {
        rows.labels[r * stride + target] = static_cast<float>(column.values->integers[r]);
      }
    } else if (column.way == Way::kNumberLabel) {
      const std::size_t stride = schema_.labels.size();
      for (std::size_t r = 0; r < num_rows; ++r) {
        rows.labels[r * stride + target] = static_cast<float>(column.numbers[r]);
      }
    } else {
      column.ids.put(rows.bags[target]);
    }
  }
}

/// Puts what the column has in this row into the open row. False: fields_.fault() says why not.
bool ParquetParser::take(Column& column, std::size_t row) {
  switch (column.way) {
    case Way::kId:
      if (column.ids.what(row) == SingleIds::Is::kUnusual) break;
      if (column.ids.what(row) == SingleIds::Is::kId)
        row_.put_id(column.target, column.ids.id(row));
      return true;
    case Way::kNumber:
      row_.number(column.target) = column.numbers[row];
      if (is_too_large(column.numbers[row])) break;
      return true;
    case Way::kLabel: {
      if (column.is_null(row)) break;
      const std::int64_t label = column.values->integers[row];
      row_.label(column.target) = static_cast<float>(label);
      return label == 0 || label == 1 || take_any(column, row);
    }
    case Way::kNumberLabel:
      if (std::isnan(column.numbers[row]) || is_too_large(column.numbers[row])) break;
      row_.label(column.target) = static_cast<float>(column.numbers[row]);
      return true;
    case Way::kIds:
      return take_integers(column, row);
    case Way::kTime:
    case Way::kGeneral:
      break;
  }
  return take_any(column, row);
}

/// A list of integers that are the ids.
bool ParquetParser::take_integers(const Column& column, std::size_t row) {
  const ParquetValues& values = *column.values;
  if (!values.presence.empty()) return take_any(column, row);
  std::int64_t begin = row == 0 ? 0 : values.ends[row - 1];
  std::int64_t end = values.ends[row];
  if (column.feature->max_length > 0 && end - begin > column.feature->max_length) {
    if (column.feature->keep == KeptIds::kLast) {
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
    std::string_view text = is_null ? std::string_view() : text_of(column, row);
    const bool is_time = std::ranges::any_of(
        column.use->consumers, [](const auto& use) { return use.kind == ColumnMap::Kind::kTime; });
    if (is_time && is_far_time(column.kind, text)) text = "one outside of them";
    return fields_.read_value(text, is_null, *column.use);
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
  return data::text_of(*column.values, column.kind, element, digits_, schema_.text.value_rule);
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
  bad.last_row = row;
  ++bad.reasons[fault.kind()];
  if (bad.messages.size() >= BadRows::kMaxMessages) return;
  const std::int64_t row_of_file = group_.rows_before + row - group_.first_row + 1;
  bad.messages.push_back(concat(group_.source->path, ": row ", row_of_file, ": ", fault.text()));
}

}  // namespace satrap::data
