#include "src/data/arrow/group_reader.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <parquet/column_reader.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/types.h>

#include "src/data/arrow/column_kind.h"

namespace satrap::data {
namespace {

std::string_view text_of(const parquet::ByteArray& bytes) {
  return {reinterpret_cast<const char*>(bytes.ptr), bytes.len};
}

/// Texts of eight bytes, as hashes are written, need neither branches nor calls.
void append_texts(const parquet::ByteArray* first, const parquet::ByteArray* last, Texts& texts) {
  constexpr std::uint32_t kUsual = 8;
  std::size_t end = texts.bytes.size(), at = texts.ends.size();
  std::size_t total = end;
  std::uint32_t other_bits = 0;
  for (const parquet::ByteArray* text = first; text < last; ++text) {
    total += text->len;
    other_bits |= text->len ^ kUsual;
  }
  texts.bytes.resize(total);
  texts.ends.resize(at + static_cast<std::size_t>(last - first));
  char* const bytes = texts.bytes.data();
  std::int64_t* const ends = texts.ends.data();
  if (other_bits == 0) {
    for (const parquet::ByteArray* text = first; text < last; ++text) {
      std::memcpy(bytes + end, text->ptr, kUsual);
      end += kUsual;
      ends[at++] = static_cast<std::int64_t>(end);
    }
    return;
  }
  for (const parquet::ByteArray* text = first; text < last; ++text) {
    if (text->len > 0) std::memcpy(bytes + end, text->ptr, text->len);
    end += text->len;
    ends[at++] = static_cast<std::int64_t>(end);
  }
}

/// Moves the elements that are there to their places among the nulls. Without branches: where the
/// nulls are cannot be foreseen.
template <class T>
void spread(std::vector<T>& elements, std::span<const std::uint8_t> presence) {
  std::size_t left = elements.size();
  elements.resize(presence.size());
  for (std::size_t i = presence.size(); i-- > 0;) {
    left -= presence[i];
    elements[i] = presence[i] != 0 ? elements[left] : T{};
  }
}

void spread(Texts& texts, std::span<const std::uint8_t> presence) {
  std::size_t left = texts.ends.size();
  texts.ends.resize(presence.size());
  for (std::size_t i = presence.size(); i-- > 0;) {
    texts.ends[i] = left == 0 ? 0 : texts.ends[left - 1];
    left -= presence[i];
  }
}

/// One column of the row group, read front to back.
class Column {
 public:
  virtual ~Column() = default;
  virtual void read(std::int64_t num_rows, ParquetValues& values) = 0;
  virtual void skip(std::int64_t num_rows) = 0;
};

template <class Type>
class TypedColumn : public Column {
 public:
  using Value = typename Type::c_type;
  static constexpr bool kIsText = std::is_same_v<Type, parquet::ByteArrayType>;

  explicit TypedColumn(std::shared_ptr<parquet::ColumnReader> reader)
      : reader_(std::move(reader)),
        typed_(static_cast<parquet::TypedColumnReader<Type>&>(*reader_)),
        full_level_(reader_->descr()->max_definition_level()),
        element_level_(element_level(*reader_->descr())),
        is_list_(reader_->descr()->max_repetition_level() > 0),
        is_unsigned_(is_unsigned(*reader_->descr())),
        has_codes_(reader_->GetExposedEncoding() == parquet::ExposedEncoding::DICTIONARY) {}

  void read(std::int64_t num_rows, ParquetValues& values) override {
    values.clear();
    is_list_ ? read_lists(num_rows, values) : read_flat(num_rows, values);
    if (std::ranges::count(values.presence, 0) == 0) {
      values.presence.clear();
    } else if constexpr (kIsText) {
      has_codes_ ? spread(values.codes, values.presence) : spread(values.texts, values.presence);
    } else if constexpr (std::is_same_v<Value, float>) {
      spread(values.floats, values.presence);
    } else if constexpr (std::is_same_v<Value, double>) {
      spread(values.doubles, values.presence);
    } else {
      spread(values.integers, values.presence);
    }
    values.dictionary = has_codes_ ? &dictionary_ : nullptr;
  }

  void skip(std::int64_t num_rows) override {
    constexpr std::int64_t kRowsAtOnce = 4096;
    for (std::int64_t rows = num_rows; is_list_ && rows > 0; rows -= kRowsAtOnce) {
      skipped_.clear();
      read_lists(std::min(rows, kRowsAtOnce), skipped_);
    }
    while (!is_list_ && num_rows > 0) {
      const std::int64_t skipped = typed_.Skip(num_rows);
      if (skipped == 0) fail();
      num_rows -= skipped;
    }
  }

 private:
  [[noreturn]] void fail() const {
    throw std::runtime_error("column '" + reader_->descr()->path()->ToDotString() +
                             "' ends before its row group");
  }

  /// Reads up to `num_levels` levels of one page, and the values that belong to them. Values of an
  /// earlier call are gone.
  std::int64_t read_levels(std::int64_t num_levels) {
    const auto size = static_cast<std::size_t>(num_levels);
    definition_.resize(std::max(definition_.size(), size));
    if (is_list_) repetition_.resize(std::max(repetition_.size(), size));
    std::int16_t* const repetition = is_list_ ? repetition_.data() : nullptr;
    std::int64_t levels = 0;
    if (has_codes_) {
      if constexpr (kIsText) levels = read_codes(num_levels, repetition);
    } else {
      if (values_size_ < size) {
        values_ = std::make_unique_for_overwrite<Value[]>(size);
        values_size_ = size;
      }
      levels =
          typed_.ReadBatch(num_levels, definition_.data(), repetition, values_.get(), &num_values_);
    }
    if (levels == 0) fail();
    return levels;
  }

  std::int64_t read_codes(std::int64_t num_levels, std::int16_t* repetition) {
    codes_.resize(std::max(codes_.size(), static_cast<std::size_t>(num_levels)));
    const Value* entries = nullptr;
    std::int32_t num_entries = 0;
    const std::int64_t levels =
        typed_.ReadBatchWithDictionary(num_levels, definition_.data(), repetition, codes_.data(),
                                       &num_values_, &entries, &num_entries);
    if constexpr (kIsText) {
      for (auto i = static_cast<std::int32_t>(dictionary_.size()); i < num_entries; ++i) {
        dictionary_.push(text_of(entries[i]));
      }
    }
    std::uint32_t largest = 0;
    for (std::int64_t i = 0; i < num_values_; ++i) {
      const auto code = static_cast<std::uint32_t>(codes_[static_cast<std::size_t>(i)]);
      largest = std::max(largest, code);
    }
    if (num_values_ > 0 && largest >= static_cast<std::uint64_t>(dictionary_.size())) {
      throw std::runtime_error("column '" + reader_->descr()->path()->ToDotString() +
                               "' has a code that is not in its dictionary");
    }
    return levels;
  }

  /// Values [begin, end) of those that read_levels() has read.
  void append(std::int64_t begin, std::int64_t end, ParquetValues& values) const {
    if (has_codes_) {
      values.codes.insert(values.codes.end(), codes_.begin() + begin, codes_.begin() + end);
      return;
    }
    const Value* const first = values_.get() + begin;
    const Value* const last = values_.get() + end;
    if constexpr (kIsText) {
      append_texts(first, last, values.texts);
    } else if constexpr (std::is_same_v<Value, float>) {
      values.floats.insert(values.floats.end(), first, last);
    } else if constexpr (std::is_same_v<Value, double>) {
      values.doubles.insert(values.doubles.end(), first, last);
    } else if constexpr (std::is_same_v<Value, std::int32_t>) {
      std::ranges::transform(first, last, std::back_inserter(values.integers), [&](Value value) {
        return is_unsigned_ ? std::int64_t{static_cast<std::uint32_t>(value)} : std::int64_t{value};
      });
    } else {
      values.integers.insert(values.integers.end(), first, last);
    }
  }

  void read_flat(std::int64_t num_rows, ParquetValues& values) {
    std::vector<std::uint8_t>& presence = values.presence;
    for (std::int64_t rows = 0; rows < num_rows;) {
      const std::int64_t levels = read_levels(num_rows - rows);
      append(0, num_values_, values);
      if (num_values_ < levels) {
        presence.resize(static_cast<std::size_t>(rows), 1);
        const auto present = [&](std::int16_t level) {
          return static_cast<std::uint8_t>(level == full_level_);
        };
        presence.resize(static_cast<std::size_t>(rows + levels));
        std::transform(definition_.begin(), definition_.begin() + levels, presence.begin() + rows,
                       present);
      }
      rows += levels;
    }
    if (!presence.empty()) presence.resize(static_cast<std::size_t>(num_rows), 1);
  }

  void read_lists(std::int64_t num_rows, ParquetValues& values) {
    constexpr std::int64_t kLevels = 4096;
    std::int64_t num_elements = 0;
    while (true) {
      if (level_ == num_levels_) {
        if (!reader_->HasNext()) break;
        num_levels_ = read_levels(kLevels);
        level_ = value_ = 0;
      }
      const std::int64_t first_value = value_;
      bool is_done = false;
      for (; level_ < num_levels_; ++level_) {
        const auto at = static_cast<std::size_t>(level_);
        if (repetition_[at] == 0) {
          is_done = std::ssize(values.ends) == num_rows;
          if (is_done) break;
          values.ends.push_back(num_elements);
        } else if (values.ends.empty()) {
          fail();  // an element before the first row
        }
        if (definition_[at] < element_level_) continue;  // a row without elements
        const bool is_present = definition_[at] == full_level_;
        values.presence.push_back(is_present ? 1 : 0);
        value_ += is_present ? 1 : 0;
        values.ends.back() = ++num_elements;
      }
      append(first_value, value_, values);
      if (is_done) break;
    }
    if (std::ssize(values.ends) != num_rows) fail();
  }

  const std::shared_ptr<parquet::ColumnReader> reader_;
  parquet::TypedColumnReader<Type>& typed_;
  const std::int16_t full_level_;
  const std::int16_t element_level_;
  const bool is_list_;
  const bool is_unsigned_;
  const bool has_codes_;
  Texts dictionary_;

  // The values that were read last:
  std::vector<std::int16_t> definition_, repetition_;
  std::unique_ptr<Value[]> values_;
  std::size_t values_size_ = 0;
  std::vector<std::int32_t> codes_;
  std::int64_t num_values_ = 0;
  std::int64_t num_levels_ = 0, level_ = 0, value_ = 0;  // of lists, whose rows end within
  ParquetValues skipped_;
};

std::unique_ptr<Column> make_column(parquet::RowGroupReader& group, int column) {
  switch (group.metadata()->schema()->Column(column)->physical_type()) {
    case parquet::Type::BOOLEAN:
      return std::make_unique<TypedColumn<parquet::BooleanType>>(group.Column(column));
    case parquet::Type::INT32:
      return std::make_unique<TypedColumn<parquet::Int32Type>>(group.Column(column));
    case parquet::Type::INT64:
      return std::make_unique<TypedColumn<parquet::Int64Type>>(group.Column(column));
    case parquet::Type::FLOAT:
      return std::make_unique<TypedColumn<parquet::FloatType>>(group.Column(column));
    case parquet::Type::DOUBLE:
      return std::make_unique<TypedColumn<parquet::DoubleType>>(group.Column(column));
    case parquet::Type::BYTE_ARRAY:
      return std::make_unique<TypedColumn<parquet::ByteArrayType>>(
          group.ColumnWithExposeEncoding(column, parquet::ExposedEncoding::DICTIONARY));
    default:
      throw std::runtime_error("a column of a type that is not read");
  }
}

class ArrowGroupReader : public ParquetGroupReader {
 public:
  ArrowGroupReader(std::unique_ptr<OpenGroup> group, std::span<const std::size_t> columns)
      : group_(std::move(group)) {
    for (const std::size_t column : columns) {
      columns_.push_back(make_column(group_->reader(), static_cast<int>(column)));
    }
  }

  void read(std::int64_t num_rows, std::span<ParquetValues> columns) override {
    for (std::size_t i = 0; i < columns_.size(); ++i) columns_[i]->read(num_rows, columns[i]);
  }

  void skip(std::int64_t num_rows) override {
    for (const std::unique_ptr<Column>& column : columns_) column->skip(num_rows);
  }

 private:
  const std::unique_ptr<OpenGroup> group_;
  std::vector<std::unique_ptr<Column>> columns_;
};

}  // namespace

std::unique_ptr<ParquetGroupReader> make_group_reader(std::unique_ptr<OpenGroup> group,
                                                      std::span<const std::size_t> columns) {
  return std::make_unique<ArrowGroupReader>(std::move(group), columns);
}

}  // namespace satrap::data
