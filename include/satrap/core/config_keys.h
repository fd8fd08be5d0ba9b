#pragma once

#include <string>
#include <vector>

#include "satrap/core/config.h"

namespace satrap {

/// A value of a config that a user can set by its key, as in `train.mode=sync`.
struct ConfigKey {
  std::string path;                  // `default` stands for the name of an entry
  std::vector<std::string> choices;  // the words it may be; empty: any
  friend bool operator==(const ConfigKey&, const ConfigKey&) = default;
};

namespace config_detail {
std::vector<ConfigKey> value_keys(const Visit& visit);
}

/// The keys of all values, in their order, without those of elements of lists.
template <ConfigStruct T>
std::vector<ConfigKey> config_keys() {
  T config{};
  return config_detail::value_keys(config_detail::visit_of(config));
}

}  // namespace satrap
