#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace satrap::data {

/// How far the clocks of a place are ahead of UTC, at any time: the transitions of a file of the
/// time zone database (TZif, RFC 9636), and after them its rule for the years to come. Immutable.
class TimeZone {
 public:
  /// Clocks that show UTC.
  TimeZone() = default;

  /// "Asia/Shanghai": the file of that name in `folder`. UTC needs no file. Throws
  /// Error(kInvalidConfig) with the nearest name if there is none.
  explicit TimeZone(const std::string& name, const std::string& folder = "/usr/share/zoneinfo");

  /// From the content of such a file; `name` is for messages. Throws Error(kInvalidConfig).
  static TimeZone parse(std::string_view bytes, const std::string& name);

  /// Seconds ahead of UTC, at a time in seconds since 1970.
  std::int64_t offset_at(std::int64_t time) const;

 private:
  struct Transition {
    std::int64_t time = 0;    // seconds since 1970; the first one is in force before it too
    std::int64_t offset = 0;  // from then on
  };
  void add_rule(std::string_view rule, const std::string& name);

  std::vector<Transition> transitions_ = {{}};  // ascending
  std::int64_t repeats_from_ = INT64_MAX;       // from then on as 400 years before
};

}  // namespace satrap::data
