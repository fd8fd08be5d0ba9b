// Files of the time zone database: any bytes are a zone, whose offset at any time is one of its
// own, or are refused.
#include <cstdint>
#include <string_view>

#include "satrap/core/error.h"
#include "satrap/data/time_zone.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const auto zone = satrap::data::TimeZone::parse(bytes, "fuzzed");
    for (const std::int64_t time : {INT64_C(-62135596800), INT64_C(-1), INT64_C(1800000000),
                                    INT64_C(4000000000), INT64_C(253402300799)}) {
      if (zone.offset_at(time) > INT64_C(1) << 32) __builtin_trap();
    }
  } catch (const satrap::Error&) {
  }
  return 0;
}
