#pragma once

// The parts of load_config, dump_config and explain_config that do not depend on the struct. Only
// config.h includes this header.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "satrap/core/config.h"

namespace satrap {
namespace config_detail {

/// Shows a config to a visitor.
using Visit = std::function<void(ConfigVisitor&)>;

template <ConfigStruct T>
Visit visit_of(T& config) {
  return [&config](ConfigVisitor& visitor) { config.visit(visitor); };
}

/// `known_keys`: dotted paths of the whole config, to suggest a key from another section.
ConfigOrigins load(const Visit& visit,
                   const std::string& path,
                   const std::vector<std::string>& overrides,
                   std::vector<std::string> known_keys);
void load_text(const Visit& visit,
               const std::string& text,
               const std::string& name,
               std::vector<std::string> known_keys);
std::string dump(const Visit& visit);
std::string explain(const Visit& visit, const std::string& path);
std::vector<std::string> keys(const Visit& visit);  // dotted paths, `*` for an element or entry

}  // namespace config_detail

template <ConfigStruct T>
ConfigOrigins load_config(T& config,
                          const std::string& path,
                          const std::vector<std::string>& overrides) {
  T defaults{};
  T loaded = config;
  ConfigOrigins origins =
      config_detail::load(config_detail::visit_of(loaded), path, overrides,
                          config_detail::keys(config_detail::visit_of(defaults)));
  config = std::move(loaded);
  return origins;
}

template <ConfigStruct T>
void load_config_text(T& config, const std::string& text, const std::string& name) {
  T defaults{};
  T loaded = config;
  config_detail::load_text(config_detail::visit_of(loaded), text, name,
                           config_detail::keys(config_detail::visit_of(defaults)));
  config = std::move(loaded);
}

template <ConfigStruct T>
std::string dump_config(T config) {
  return config_detail::dump(config_detail::visit_of(config));
}

template <ConfigStruct T>
std::string explain_config(const std::string& path) {
  T config{};
  return config_detail::explain(config_detail::visit_of(config), path);
}

}  // namespace satrap
