#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace satrap::data {

/// Rows of a block that could not be parsed.
struct BadRows {
  static constexpr std::size_t kMaxMessages = 10;

  std::int64_t count = 0;
  std::vector<std::string> messages;  // of the first ones: "file:line: column 'I3': expected ..."
  std::map<std::string, std::int64_t> reasons;  // how many for which: "column 'I3': expected ..."
  std::int64_t last_row = -1;                   // number of the last one, if there is one

  /// Good rows of the block that are not read: those that do not meet data.train.where or
  /// data.eval.where, negatives (data.train.negatives), and those that teach nothing. Those of a
  /// block that nothing is returned for may be missing.
  std::int64_t left_out = 0;

  void clear() {
    count = left_out = 0;
    messages.clear();
    reasons.clear();
  }

  /// Adds those of a later block.
  void append(const BadRows& later);
};

}  // namespace satrap::data
