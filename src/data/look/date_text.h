#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace satrap::data {

/// A date as programs and people write it, maybe with a time of day, as a number that is larger the
/// later it is; zones are ignored. nullopt: the text is no date. Read are:
///   2026-03-21, 2026/3/21, 2026.03.21
///   03/21/2026, 3/21/26, 03-21-2026; with `day_first` 21.03.2026, 21/3/26, 21-03-2026
///   21-Mar-2026, 21 March 2026, Mar 21, 2026, each maybe after a day of the week
///   20260321, 2026032114, 20260321140500
/// with 14:05, 2:05:22 PM, T14:05:22.125Z, 14:05 +0100 or the hour alone behind one with
/// separators.
std::optional<std::int64_t> date_of(std::string_view text, bool day_first);

}  // namespace satrap::data
