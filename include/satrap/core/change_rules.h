#pragma once

#include <map>
#include <string>

#include "satrap/core/config.h"

namespace satrap {

/// The rule for another value of each key, by its path as in config_values: an element of a list of
/// structs has its index in the path.
using ChangeRules = std::map<std::string, ChangeRule>;

namespace config_detail {
ChangeRules change_rules(const Visit& visit, ChangeRule outer);
}

/// The rules of all keys of `config`. `outer`: of those without a rule of their own or of their
/// section, such as that of the section which holds the struct.
template <ConfigStruct T>
ChangeRules change_rules(T config, ChangeRule outer = {}) {
  return config_detail::change_rules(config_detail::visit_of(config), outer);
}

}  // namespace satrap
