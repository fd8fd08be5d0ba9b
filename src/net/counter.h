#pragma once

#include <cstdint>
#include <string_view>

#include "satrap/core/text.h"

namespace satrap::net {

/// The value of a store's counter once `amount` has been added to it. A text that is no number is
/// 0. Wraps around at the ends of its range: whoever may add may add anything.
inline std::int64_t counter_after(std::string_view text, std::int64_t amount) {
  const std::int64_t value = parse_number<std::int64_t>(text).value_or(0);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(value) +
                                   static_cast<std::uint64_t>(amount));
}

}  // namespace satrap::net
