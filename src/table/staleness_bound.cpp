#include "satrap/table/staleness_bound.h"

#include <algorithm>
#include <cmath>

#include "satrap/core/error.h"

namespace satrap::table {

StalenessBound::StalenessBound(std::int64_t max, double factor) : max_(max), factor_(factor) {
  SATRAP_CHECK(max >= 0 && factor >= 0.0 && factor <= 1.0, "staleness ", max, " with factor ",
               factor);
}

std::int64_t StalenessBound::at(std::int64_t step) const {
  if (factor_ == 0.0) return max_;
  // √ is correctly rounded everywhere, so every machine has the same bounds.
  const double bound = std::floor(factor_ * std::sqrt(static_cast<double>(step)));
  return bound < static_cast<double>(max_) ? static_cast<std::int64_t>(bound) : max_;
}

std::int64_t StalenessBound::last_reader(std::int64_t version) const {
  std::int64_t first = version + 1, last = version + 1 + max_;  // the answer is in [first, last]
  while (first < last) {
    const std::int64_t middle = first + (last - first + 1) / 2;
    if (oldest_version(middle) <= version) {
      first = middle;
    } else {
      last = middle - 1;
    }
  }
  return first;
}

}  // namespace satrap::table
