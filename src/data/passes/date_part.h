#pragma once

#include <cstdint>

#include "satrap/data/config.h"
#include "satrap/data/time_zone.h"

namespace satrap::data {

/// The id of a part of a time, in milliseconds since 1970, on the clocks of a zone.
std::uint64_t id_of_part(DatePart part, const TimeZone& zone, double ms);

/// The time from `since` to `time`, both in milliseconds; NaN if either is.
double age_of(double time, double since, AgeUnit unit);

}  // namespace satrap::data
