#pragma once

#include <string>

#include "satrap/core/config.h"
#include "satrap/core/error.h"
#include "satrap/core/text.h"

namespace satrap::data {

/// Throws an error with the place of a broken rule: "train.yaml:12: data.schema.quote: ...". The
/// origins must outlive it.
class ConfigChecker {
 public:
  explicit ConfigChecker(const ConfigOrigins& origins) : origins_(origins) {}

  void require(bool holds, const std::string& key, const std::string& rule) const {
    if (holds) return;
    const auto origin = origins_.find(key);
    throw Error(ErrorCode::kInvalidConfig, origin == origins_.end()
                                               ? concat(key, ": ", rule)
                                               : concat(origin->second, ": ", key, ": ", rule));
  }

 private:
  const ConfigOrigins& origins_;
};

}  // namespace satrap::data
