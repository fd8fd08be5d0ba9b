#include "src/data/value_text.h"

#include <charconv>
#include <cstdint>

namespace satrap::data {

std::string_view text_of(const ParquetValues& values,
                         ParquetFile::Kind kind,
                         std::size_t element,
                         NumberText& buffer) {
  const auto text = [&](auto number) {
    const char* const end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr;
    return std::string_view(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  };
  switch (kind) {
    case ParquetFile::Kind::kInteger:
      return text(values.integers[element]);
    case ParquetFile::Kind::kUnsigned:
      return text(static_cast<std::uint64_t>(values.integers[element]));
    case ParquetFile::Kind::kFloat:
      return text(values.floats[element]);
    case ParquetFile::Kind::kDouble:
      return text(values.doubles[element]);
    default:
      return values.dictionary != nullptr ? values.dictionary->at(values.codes[element])
                                          : values.texts.at(static_cast<std::int64_t>(element));
  }
}

}  // namespace satrap::data
