#pragma once

#include <cstdint>
#include <string_view>

namespace satrap::data {

/// Whether a value is a time. kMissing: 0000-00-00, which MySQL writes for none.
enum class TimeIs : std::uint8_t { kThere, kMissing, kNone };

/// Times of columns are whole milliseconds since 1970-01-01T00:00 UTC, in a double, which holds
/// them exactly. What is below a millisecond is dropped. They are of the years 1 to 9999.

/// A date, maybe with a time of day and its zone; without one it is UTC. `ms` is set for kThere.
///   2026-11-20, 2026/11/20, 20.11.2026
///   behind a T or spaces 21:05, 21:05:09, 21:05:09.125
///   behind it Z, UTC, GMT, +08, +0800 or +08:00
TimeIs time_of_text(std::string_view text, double& ms);

/// 20261120 and 20261120210509 are dates. Any other number counts from 1970: seconds below 1e11 in
/// size, milliseconds below 1e14, microseconds below 1e17, and else nanoseconds.
TimeIs time_of_number(double number, double& ms);

}  // namespace satrap::data
