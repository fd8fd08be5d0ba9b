#include "src/data/json_sample.h"

#include <cstddef>
#include <set>
#include <unordered_map>

#include <nlohmann/json.hpp>

namespace satrap::data {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kBetweenJsonElements = '|';

std::string scalar_text(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

class JsonSample {
 public:
  explicit JsonSample(Sample& sample) : sample_(sample) {}

  void add_row(const Json& object) {
    add_keys(object, "");
    ++sample_.num_rows;
    for (auto& column : sample_.columns) column.resize(static_cast<std::size_t>(sample_.num_rows));
  }

  /// Leaves out the keys whose values are no columns.
  void finish() {
    for (std::size_t c = sample_.names.size(); c-- > 0;) {
      if (!unreadable_.contains(sample_.names[c])) continue;
      sample_.names.erase(sample_.names.begin() + static_cast<std::ptrdiff_t>(c));
      sample_.columns.erase(sample_.columns.begin() + static_cast<std::ptrdiff_t>(c));
    }
  }

 private:
  void add_keys(const Json& object, const std::string& prefix) {
    for (const auto& [key, value] : object.items()) {
      const std::string path = prefix + key;
      if (value.is_object()) {
        add_keys(value, path + ".");
      } else {
        put(path, value);
      }
    }
  }

  void put(const std::string& path, const Json& value) {
    std::string text;
    if (value.is_array()) {
      for (const Json& element : value) {
        if (element.is_structured()) unreadable_.insert(path);
        if (!text.empty()) text += kBetweenJsonElements;
        text += scalar_text(element);
      }
    } else {
      text = scalar_text(value);
    }
    const auto [place, is_new] = places_.try_emplace(path, sample_.names.size());
    if (is_new) {
      sample_.names.push_back(path);
      sample_.columns.emplace_back();
    }
    std::vector<std::string>& column = sample_.columns[place->second];
    column.resize(static_cast<std::size_t>(sample_.num_rows + 1));
    column.back() = text;
  }

  Sample& sample_;
  std::unordered_map<std::string, std::size_t> places_;
  std::set<std::string> unreadable_;
};

}  // namespace

void sample_json(const std::vector<std::string>& lines, std::int64_t max_rows, Sample& sample) {
  JsonSample rows(sample);
  for (const std::string& line : lines) {
    if (sample.num_rows == max_rows) {
      sample.is_whole = false;
      break;
    }
    const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (object.is_object()) {
      rows.add_row(object);
    } else {
      ++sample.num_ragged;
    }
  }
  rows.finish();
  sample.header = true;
}

}  // namespace satrap::data
