#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace satrap::data {

/// The fields of one column as they were written, for consecutive rows. Reused without allocating
/// once its vectors have grown.
struct Texts {
  std::string bytes;               // one after the other
  std::vector<std::int64_t> ends;  // [rows] where each ends in `bytes`

  std::int64_t size() const { return static_cast<std::int64_t>(ends.size()); }

  void clear() { resize(0); }
  void push(std::string_view text) {
    bytes.append(text);
    ends.push_back(static_cast<std::int64_t>(bytes.size()));
  }
  /// Keeps the first `rows`, of at least as many.
  void resize(std::size_t rows) {
    ends.resize(rows);
    bytes.resize(rows == 0 ? 0 : static_cast<std::size_t>(ends.back()));
  }
  std::string_view at(std::int64_t row) const {
    const auto r = static_cast<std::size_t>(row);
    const auto begin = static_cast<std::size_t>(r == 0 ? 0 : ends[r - 1]);
    return std::string_view(bytes).substr(begin, static_cast<std::size_t>(ends[r]) - begin);
  }
};

}  // namespace satrap::data
