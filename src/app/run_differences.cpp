#include "src/app/run_differences.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <span>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace satrap::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShownElements = 8;

/// The names of the elements of lists of maps, by the paths of the elements: "a.b.3" is "city".
class ElementNames {
 public:
  explicit ElementNames(const Json& config) {
    std::map<std::string, std::string> values;
    for (const Json& pair : config) values[pair[0]] = pair[1];
    std::set<std::string> taken;
    for (const auto& [path, unused] : values) {
      for (const std::string_view key : {".name", ".column"}) {
        if (!path.ends_with(key)) continue;
        const std::string element = path.substr(0, path.size() - key.size());
        const std::size_t dot = element.rfind('.');
        if (dot == std::string::npos || !is_index(element.substr(dot + 1))) continue;
        const auto named = values.find(element + ".name");
        const auto column = values.find(element + ".column");
        std::string name = named == values.end() ? "" : named->second;
        if (name.empty() && column != values.end()) name = column->second;
        if (name.empty() || names_.contains(element)) continue;
        if (taken.insert(element.substr(0, dot + 1) + name).second) names_[element] = name;
      }
    }
  }

  struct Place {
    std::string path;           // by names
    std::string list, element;  // the first list on the way, and the element; "": there is none
  };
  Place place_of(const std::string& path) const {
    Place place;
    for (std::size_t begin = 0; begin <= path.size();) {
      const std::size_t end = std::min(path.find('.', begin), path.size());
      const auto found = names_.find(path.substr(0, end));
      const std::string part =
          found == names_.end() ? path.substr(begin, end - begin) : found->second;
      if (found != names_.end() && place.element.empty()) {
        place.list = place.path;
        place.element = part;
      }
      place.path += (begin == 0 ? "" : ".") + part;
      begin = end + 1;
    }
    return place;
  }

 private:
  static bool is_index(const std::string& text) {
    return !text.empty() &&
           std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
  }

  std::map<std::string, std::string> names_;
};

using Elements = std::set<std::pair<std::string, std::string>>;  // (list, name)

struct Configuration {
  std::map<std::string, std::string> values;               // by path
  std::map<std::string, Elements::value_type> element_of;  // the paths in lists
  Elements elements;
};

Configuration read_configuration(const Json& run) {
  Configuration found;
  const ElementNames names(run["config"]);
  for (const Json& pair : run["config"]) {
    const ElementNames::Place place = names.place_of(pair[0]);
    found.values[place.path] = pair[1];
    if (place.element.empty()) continue;
    found.element_of[place.path] = {place.list, place.element};
    found.elements.emplace(place.list, place.element);
  }
  return found;
}

/// "+city +hour -age": what a run has and lacks of the elements that differ; by list.
std::map<std::string, std::string> lists_of(const Configuration& run, const Elements& differing) {
  std::map<std::string, std::vector<std::string>> words;
  for (const char sign : {'+', '-'}) {
    for (const auto& element : differing) {
      if (run.elements.contains(element) == (sign == '+')) {
        words[element.first].push_back(sign + element.second);
      }
    }
  }
  std::map<std::string, std::string> texts;
  for (const auto& [list, all] : words) {
    const std::size_t shown = all.size() > kShownElements + 1 ? kShownElements : all.size();
    texts[list] = fmt::format("{}", fmt::join(std::span(all).first(shown), " "));
    if (shown < all.size()) texts[list] += fmt::format(" and {} more", all.size() - shown);
  }
  return texts;
}

}  // namespace

Settings settings_by_name(const Json& run) {
  const ElementNames names(run["config"]);
  Settings settings;
  for (const Json& pair : run["config"]) {
    settings.emplace_back(names.place_of(pair[0]).path, pair[1]);
  }
  return settings;
}

std::vector<Settings> config_differences(const std::vector<Json>& runs) {
  std::vector<Configuration> all;
  for (const Json& run : runs) all.push_back(read_configuration(run));

  Elements elements;                                // that only some have
  std::set<std::string> keys{"run_dir", "folder"};  // that have been looked at
  for (const Configuration& run : all) {
    for (const auto& element : run.elements) {
      const bool is_everywhere = std::ranges::all_of(
          all, [&](const Configuration& other) { return other.elements.contains(element); });
      if (!is_everywhere) elements.insert(element);
    }
  }
  std::vector<std::map<std::string, std::string>> found;
  for (const Configuration& run : all) found.push_back(lists_of(run, elements));
  for (const Configuration& run : all) {
    for (const auto& [path, value] : run.values) {
      const auto element = run.element_of.find(path);
      if (element != run.element_of.end() && elements.contains(element->second)) continue;
      if (!keys.insert(path).second) continue;
      const bool is_everywhere = std::ranges::all_of(all, [&](const Configuration& other) {
        const auto at = other.values.find(path);
        return at != other.values.end() && at->second == value;
      });
      if (is_everywhere) continue;
      for (std::size_t r = 0; r < all.size(); ++r) {
        const auto at = all[r].values.find(path);
        if (at != all[r].values.end()) found[r][path] = at->second;
      }
    }
  }
  std::vector<Settings> differences;
  for (const auto& one : found) differences.emplace_back(one.begin(), one.end());
  return differences;
}

}  // namespace satrap::app
