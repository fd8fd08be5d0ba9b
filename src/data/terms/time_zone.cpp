#include "satrap/data/time_zone.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "satrap/core/config.h"
#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/text.h"
#include "src/data/terms/zone_rule.h"

namespace satrap::data {
namespace {

/// The calendar repeats, with the days of the week.
constexpr std::int64_t kSecondsIn400Years = std::int64_t{146'097} * 86'400;
constexpr int kYearsOfCalendar = 400;

[[noreturn]] void refuse_zone(const std::string& name, const std::string& why) {
  throw Error(ErrorCode::kInvalidConfig, concat("time zone '", printable(name), "' ", why));
}

/// Big-endian numbers and texts from the front of a file.
class ZoneBytes {
 public:
  ZoneBytes(std::string_view bytes, const std::string& name) : rest_(bytes), name_(name) {}

  std::string_view take(std::uint64_t size) {
    if (size > rest_.size()) refuse_zone(name_, "has a file that ends too early");
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::uint64_t number(std::size_t size) {
    std::uint64_t value = 0;
    for (const char c : take(size)) value = value << 8 | static_cast<unsigned char>(c);
    return value;
  }

  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
  const std::string& name_;
};

/// The beginning of each of the two blocks of a file.
struct ZoneHeader {
  std::uint64_t version, utc_marks, standard_marks, leap_seconds, transitions, types, letters;

  explicit ZoneHeader(ZoneBytes& bytes, const std::string& name) {
    if (bytes.take(4) != "TZif") refuse_zone(name, "has a file that is none of a time zone");
    version = bytes.number(1);
    bytes.take(15);
    for (auto* const count :
         {&utc_marks, &standard_marks, &leap_seconds, &transitions, &types, &letters}) {
      *count = bytes.number(4);
    }
  }

  std::uint64_t bytes_of_block(std::uint64_t bytes_of_time) const {
    return transitions * (bytes_of_time + 1) + types * 6 + letters +
           leap_seconds * (bytes_of_time + 4) + standard_marks + utc_marks;
  }
};

/// A name of the database, and no other file's. `localtime` is another zone on other machines.
bool is_zone_name(const std::string& name) {
  return !name.empty() && name != "localtime" && name != "posixrules" && !name.starts_with('/') &&
         name.find("..") == std::string::npos;
}

std::vector<std::string> zones_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  auto file = std::filesystem::recursive_directory_iterator(folder, error);
  for (; !error && file != std::filesystem::recursive_directory_iterator(); file.increment(error)) {
    const std::string name = file->path().lexically_relative(folder).string();
    std::error_code unknown;
    if (file->is_regular_file(unknown) && is_zone_name(name)) names.push_back(name);
  }
  return names;
}

}  // namespace

TimeZone::TimeZone(const std::string& name, const std::string& folder) {
  if (name == "UTC") return;
  const std::string path = concat(folder, '/', name);
  std::error_code error;
  if (is_zone_name(name) && std::filesystem::is_regular_file(path, error)) {
    *this = parse(read_file(path), name);
    return;
  }
  const std::vector<std::string> known = zones_in(folder);
  if (known.empty()) {
    refuse_zone(name, concat("cannot be looked up: there is no database of time zones in ", folder,
                             "; install the package tzdata"));
  }
  const std::string guess = nearest(name, known);
  refuse_zone(name, guess.empty()
                        ? concat("is none of those in ", folder, ", such as Europe/Berlin")
                        : concat("is unknown; did you mean '", guess, "'?"));
}

TimeZone TimeZone::parse(std::string_view content, const std::string& name) {
  ZoneBytes bytes(content, name);
  const ZoneHeader narrow(bytes, name);
  if (narrow.version < '2')
    refuse_zone(name, "has a file of version 1, with 32 bits: update tzdata");
  bytes.take(narrow.bytes_of_block(4));
  const ZoneHeader header(bytes, name);
  if (header.leap_seconds > 0) refuse_zone(name, "counts leap seconds, which times do not");
  const std::string_view times = bytes.take(header.transitions * 8);
  const std::string_view types_of_times = bytes.take(header.transitions);
  const std::string_view types = bytes.take(header.types * 6);
  bytes.take(header.letters + header.standard_marks + header.utc_marks);
  const auto offset_of = [&](std::uint64_t type) {
    if (type >= header.types) refuse_zone(name, "has a file with a transition to nothing");
    const auto seconds = ZoneBytes(types.substr(type * 6, 4), name).number(4);
    return std::int64_t{static_cast<std::int32_t>(static_cast<std::uint32_t>(seconds))};
  };
  TimeZone zone;
  zone.transitions_ = {{.time = INT64_MIN, .offset = offset_of(0)}};
  ZoneBytes rest_of_times(times, name);
  for (const char type : types_of_times) {
    const auto time = static_cast<std::int64_t>(rest_of_times.number(8));
    if (zone.transitions_.size() > 1 && time <= zone.transitions_.back().time) {
      refuse_zone(name, "has a file whose transitions are not in order");
    }
    zone.transitions_.push_back({time, offset_of(static_cast<unsigned char>(type))});
  }
  std::string_view rule = bytes.rest();
  if (!rule.starts_with('\n') || !rule.ends_with('\n') || rule.size() < 2) {
    refuse_zone(name, "has a file without its last line");
  }
  rule = rule.substr(1, rule.size() - 2);
  if (!rule.empty()) zone.add_rule(rule, name);
  return zone;
}

/// Adds the transitions of the rule from the last one on, until the calendar repeats itself.
void TimeZone::add_rule(std::string_view text, const std::string& name) {
  using namespace std::chrono;
  const std::optional<ZoneRule> rule = ZoneRule::parse(text);
  if (!rule) refuse_zone(name, "has a file whose last line is no rule");
  const std::int64_t last = transitions_.back().time;
  const sys_seconds from(seconds(std::clamp<std::int64_t>(last, -5'000'000'000, 16'000'000'000)));
  const int first_year = static_cast<int>(year_month_day(floor<days>(from)).year());
  if (!rule->has_summer) return;  // the last transition says the same
  struct Later {
    Transition transition;
    std::size_t place;  // of two at one time the later one counts
  };
  std::vector<Later> later;
  const auto add = [&](const Transition& transition) {
    later.push_back({transition, later.size()});
  };
  for (int year = first_year; year <= first_year + kYearsOfCalendar + 1; ++year) {
    add({rule->to_summer.in_year(year) - rule->offset, rule->summer_offset});
    add({rule->from_summer.in_year(year) - rule->summer_offset, rule->offset});
  }
  std::ranges::sort(later, {},
                    [](const Later& one) { return std::pair(one.transition.time, one.place); });
  for (const auto& [transition, place] : later) {
    if (transition.time > last) transitions_.push_back(transition);
  }
  repeats_from_ = transitions_.back().time;
}

std::int64_t TimeZone::offset_at(std::int64_t time) const {
  if (time >= repeats_from_) {
    time -= ((time - repeats_from_) / kSecondsIn400Years + 1) * kSecondsIn400Years;
  }
  const auto after = std::ranges::upper_bound(transitions_, time, {}, &Transition::time);
  return after == transitions_.begin() ? after->offset : std::prev(after)->offset;
}

}  // namespace satrap::data
