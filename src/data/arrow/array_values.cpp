#include "src/data/arrow/array_values.h"

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>

#include <arrow/array.h>
#include <arrow/type.h>
#include <arrow/util/checked_cast.h>

namespace satrap::data {
namespace {

using ArrowKind = ParquetFile::Kind;

ArrowKind kind_of(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::BOOL:
      return ArrowKind::kTruth;
    case arrow::Type::INT8:
    case arrow::Type::INT16:
    case arrow::Type::INT32:
    case arrow::Type::INT64:
    case arrow::Type::UINT8:
    case arrow::Type::UINT16:
    case arrow::Type::UINT32:
      return ArrowKind::kInteger;
    case arrow::Type::UINT64:
      return ArrowKind::kUnsigned;
    case arrow::Type::FLOAT:
      return ArrowKind::kFloat;
    case arrow::Type::DOUBLE:
      return ArrowKind::kDouble;
    case arrow::Type::DATE32:
    case arrow::Type::DATE64:
      return ArrowKind::kDays;
    case arrow::Type::TIMESTAMP:
      switch (static_cast<const arrow::TimestampType&>(type).unit()) {
        case arrow::TimeUnit::SECOND:
          return ArrowKind::kSeconds;
        case arrow::TimeUnit::MILLI:
          return ArrowKind::kMilliseconds;
        case arrow::TimeUnit::MICRO:
          return ArrowKind::kMicroseconds;
        case arrow::TimeUnit::NANO:
          return ArrowKind::kNanoseconds;
      }
      return ArrowKind::kOther;
    case arrow::Type::NA:  // every value is null
    case arrow::Type::STRING:
    case arrow::Type::BINARY:
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY:
    case arrow::Type::STRING_VIEW:
    case arrow::Type::BINARY_VIEW:
      return ArrowKind::kText;
    case arrow::Type::DICTIONARY: {
      const auto& entries = static_cast<const arrow::DictionaryType&>(type).value_type();
      const bool is_text = entries->id() != arrow::Type::DICTIONARY &&
                           entries->id() != arrow::Type::NA &&
                           kind_of(*entries) == ArrowKind::kText;
      return is_text ? ArrowKind::kText : ArrowKind::kOther;
    }
    default:
      return ArrowKind::kOther;
  }
}

bool is_list(const arrow::DataType& type) {
  return type.id() == arrow::Type::LIST || type.id() == arrow::Type::LARGE_LIST ||
         type.id() == arrow::Type::FIXED_SIZE_LIST;
}

/// Elements of a list array that are those of a row.
std::pair<std::int64_t, std::int64_t> elements_of(const arrow::Array& lists, std::int64_t row) {
  const auto range = [&](const auto& array) {
    const auto begin = static_cast<std::int64_t>(array.value_offset(row));
    return std::pair(begin, begin + static_cast<std::int64_t>(array.value_length(row)));
  };
  switch (lists.type_id()) {
    case arrow::Type::LIST:
      return range(static_cast<const arrow::ListArray&>(lists));
    case arrow::Type::LARGE_LIST:
      return range(static_cast<const arrow::LargeListArray&>(lists));
    default:
      return range(static_cast<const arrow::FixedSizeListArray&>(lists));
  }
}

std::shared_ptr<arrow::Array> elements_of(const arrow::Array& lists) {
  switch (lists.type_id()) {
    case arrow::Type::LIST:
      return static_cast<const arrow::ListArray&>(lists).values();
    case arrow::Type::LARGE_LIST:
      return static_cast<const arrow::LargeListArray&>(lists).values();
    default:
      return static_cast<const arrow::FixedSizeListArray&>(lists).values();
  }
}

/// Calls use(text) for elements [begin, end) of an array of texts; "" for a null.
template <class Use>
void for_each_text(const arrow::Array& array,
                   std::int64_t begin,
                   std::int64_t end,
                   const Use& use) {
  const auto walk = [&](const auto& texts) {
    for (std::int64_t i = begin; i < end; ++i) {
      use(texts.IsNull(i) ? std::string_view() : std::string_view(texts.GetView(i)));
    }
  };
  switch (array.type_id()) {
    case arrow::Type::STRING:
    case arrow::Type::BINARY:
      return walk(static_cast<const arrow::BinaryArray&>(array));
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY:
      return walk(static_cast<const arrow::LargeBinaryArray&>(array));
    case arrow::Type::STRING_VIEW:
    case arrow::Type::BINARY_VIEW:
      return walk(static_cast<const arrow::BinaryViewArray&>(array));
    default:  // NA
      for (std::int64_t i = begin; i < end; ++i) use(std::string_view());
  }
}

template <class Array, class Number>
void append_numbers(const arrow::Array& array,
                    std::int64_t begin,
                    std::int64_t end,
                    std::vector<Number>& numbers) {
  const auto& typed = static_cast<const Array&>(array);
  for (std::int64_t i = begin; i < end; ++i) {
    numbers.push_back(typed.IsNull(i) ? Number{} : static_cast<Number>(typed.Value(i)));
  }
}

std::int64_t whole_days(std::int64_t milliseconds) {
  return std::chrono::floor<std::chrono::days>(std::chrono::milliseconds(milliseconds)).count();
}

}  // namespace

ParquetFile::Column describe_type(const arrow::DataType& type) {
  ParquetFile::Column column;
  column.type = type.ToString();
  column.is_list = is_list(type);
  column.kind = kind_of(column.is_list ? *type.field(0)->type() : type);
  return column;
}

ArrayValues::ArrayValues(std::shared_ptr<arrow::Array> array) : elements_(std::move(array)) {
  if (is_list(*elements_->type())) {
    lists_ = elements_;
    elements_ = elements_of(*lists_);
  }
  if (elements_->type_id() != arrow::Type::DICTIONARY) return;
  const auto coded = std::static_pointer_cast<arrow::DictionaryArray>(elements_);
  entries_ = coded->dictionary();
  for_each_text(*entries_, 0, entries_->length(),
                [&](std::string_view text) { dictionary_.push(text); });
}

void ArrayValues::read(std::int64_t num_rows, ParquetValues& values) {
  values.clear();
  values.dictionary = entries_ ? &dictionary_ : nullptr;
  num_elements_ = 0;
  const std::int64_t end = row_ + num_rows;
  if (end > (lists_ ? lists_ : elements_)->length()) {
    throw std::runtime_error("a record batch ends before its rows");
  }
  if (!lists_) append(row_, end, values);
  for (; lists_ && row_ < end; ++row_) {
    if (lists_->IsValid(row_)) {
      const auto [first, last] = elements_of(*lists_, row_);
      append(first, last, values);
    }
    values.ends.push_back(num_elements_);
  }
  row_ = end;
  if (!values.presence.empty()) values.presence.resize(static_cast<std::size_t>(num_elements_), 1);
}

void ArrayValues::append(std::int64_t begin, std::int64_t end, ParquetValues& values) {
  const arrow::Array& array = *elements_;
  const auto* const coded = entries_ ? static_cast<const arrow::DictionaryArray*>(&array) : nullptr;
  const bool may_be_null = array.null_count() > 0 || (entries_ && entries_->null_count() > 0);
  if (may_be_null) {
    values.presence.resize(static_cast<std::size_t>(num_elements_), 1);
    for (std::int64_t i = begin; i < end; ++i) {
      const bool is_there =
          array.IsValid(i) && (!entries_ || entries_->IsValid(coded->GetValueIndex(i)));
      values.presence.push_back(is_there ? 1 : 0);
    }
  }
  num_elements_ += end - begin;
  switch (array.type_id()) {
    case arrow::Type::BOOL:
      return append_numbers<arrow::BooleanArray>(array, begin, end, values.integers);
    case arrow::Type::INT8:
      return append_numbers<arrow::Int8Array>(array, begin, end, values.integers);
    case arrow::Type::INT16:
      return append_numbers<arrow::Int16Array>(array, begin, end, values.integers);
    case arrow::Type::INT32:
      return append_numbers<arrow::Int32Array>(array, begin, end, values.integers);
    case arrow::Type::INT64:
      return append_numbers<arrow::Int64Array>(array, begin, end, values.integers);
    case arrow::Type::UINT8:
      return append_numbers<arrow::UInt8Array>(array, begin, end, values.integers);
    case arrow::Type::UINT16:
      return append_numbers<arrow::UInt16Array>(array, begin, end, values.integers);
    case arrow::Type::UINT32:
      return append_numbers<arrow::UInt32Array>(array, begin, end, values.integers);
    case arrow::Type::UINT64:
      return append_numbers<arrow::UInt64Array>(array, begin, end, values.integers);
    case arrow::Type::DATE32:
      return append_numbers<arrow::Date32Array>(array, begin, end, values.integers);
    case arrow::Type::TIMESTAMP:
      return append_numbers<arrow::TimestampArray>(array, begin, end, values.integers);
    case arrow::Type::DATE64: {
      const std::size_t first = values.integers.size();
      append_numbers<arrow::Date64Array>(array, begin, end, values.integers);
      for (std::size_t i = first; i < values.integers.size(); ++i) {
        values.integers[i] = whole_days(values.integers[i]);
      }
      return;
    }
    case arrow::Type::FLOAT:
      return append_numbers<arrow::FloatArray>(array, begin, end, values.floats);
    case arrow::Type::DOUBLE:
      return append_numbers<arrow::DoubleArray>(array, begin, end, values.doubles);
    case arrow::Type::DICTIONARY:
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t code = array.IsNull(i) ? 0 : coded->GetValueIndex(i);
        values.codes.push_back(static_cast<std::int32_t>(code));
      }
      return;
    default:
      for_each_text(array, begin, end, [&](std::string_view text) { values.texts.push(text); });
  }
}

}  // namespace satrap::data
