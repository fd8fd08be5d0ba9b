#include "src/data/json_sample.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

namespace satrap::data {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kBetweenJsonElements = '|';
constexpr int kMaxDepth = 64;             // of objects and arrays in each other
constexpr std::int64_t kRareShare = 100;  // a key in less than one of so many rows is left out

std::string scalar_text(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

bool is_deeper_than(const Json& value, int depth) {
  if (!value.is_structured()) return false;
  return depth == 0 || std::ranges::any_of(value, [&](const Json& element) {
           return is_deeper_than(element, depth - 1);
         });
}

/// The line with null for NaN and Infinity, as Python writes them, outside of texts.
std::string without_bare_words(std::string_view line) {
  std::string text;
  bool is_in_text = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (is_in_text && line[i] == '\\' && i + 1 < line.size()) {
      text += line[i++];
    } else if (line[i] == '"') {
      is_in_text = !is_in_text;
    }
    std::size_t size = 0;
    for (const std::string_view word : {"NaN", "-Infinity", "Infinity"}) {
      if (!is_in_text && size == 0 && line.substr(i).starts_with(word)) size = word.size();
    }
    if (size > 0) {
      text += "null";
      i += size - 1;
    } else {
      text += line[i];
    }
  }
  return text;
}

/// Discarded if the line is none.
Json json_of(const std::string& line) {
  Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_discarded()) return json;
  return Json::parse(without_bare_words(line), nullptr, /*allow_exceptions=*/false);
}

class JsonSample {
 public:
  /// Counts `max_cells` values at most, but for those of the last row.
  JsonSample(Sample& sample, std::int64_t max_cells) : sample_(sample), max_cells_(max_cells) {}

  bool is_full() const { return num_cells_ >= max_cells_; }

  void add_row(const Json& object) {
    add_keys(object, "");
    ++sample_.num_rows;
  }

  /// Makes columns of the keys, but for those whose values are none, and rare ones.
  void finish() {
    std::erase_if(keys_, [&](const Key& key) {
      const bool is_rare = kRareShare * std::ssize(key.values) < sample_.num_rows;
      if (is_rare && key.is_readable) ++sample_.num_rare;
      return is_rare || !key.is_readable;
    });
    const std::int64_t most_rows =
        std::max<std::int64_t>(1, max_cells_ / std::max<std::int64_t>(1, std::ssize(keys_)));
    if (sample_.num_rows > most_rows) {
      sample_.num_rows = most_rows;
      sample_.is_whole = false;
    }
    for (Key& key : keys_) {
      auto& column = sample_.columns.emplace_back(static_cast<std::size_t>(sample_.num_rows));
      for (auto& [row, text] : key.values) {
        if (row < sample_.num_rows) column[static_cast<std::size_t>(row)] = std::move(text);
      }
      if (key.is_list) sample_.lists.push_back(key.path);
      sample_.names.push_back(std::move(key.path));
      key.values = {};
    }
  }

 private:
  struct Key {
    std::string path;
    bool is_readable = true;
    bool is_list = false;
    std::vector<std::pair<std::int64_t, std::string>> values = {};  // by row, ascending
  };

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
    const auto [place, is_new] = places_.try_emplace(path, keys_.size());
    if (is_new) keys_.push_back({.path = path});
    Key& key = keys_[place->second];
    std::string text;
    if (value.is_array()) {
      key.is_list = true;
      for (const Json& element : value) {
        if (element.is_structured()) key.is_readable = false;
        if (!text.empty()) text += kBetweenJsonElements;
        text += scalar_text(element);
      }
    } else {
      text = scalar_text(value);
    }
    if (!key.values.empty() && key.values.back().first == sample_.num_rows) {
      key.values.back().second = std::move(text);  // the last of equal keys counts
    } else {
      key.values.emplace_back(sample_.num_rows, std::move(text));
      ++num_cells_;
    }
  }

  Sample& sample_;
  const std::int64_t max_cells_;
  std::int64_t num_cells_ = 0;
  std::vector<Key> keys_;  // in the order of their first rows
  std::unordered_map<std::string, std::size_t> places_;
};

}  // namespace

void sample_json(const std::vector<std::string>& lines,
                 std::int64_t max_rows,
                 std::int64_t max_cells,
                 Sample& sample) {
  JsonSample rows(sample, max_cells);
  for (const std::string& line : lines) {
    if (sample.num_rows == max_rows || rows.is_full()) {
      sample.is_whole = false;
      break;
    }
    const Json object = json_of(line);
    if (object.is_object() && !is_deeper_than(object, kMaxDepth)) {
      rows.add_row(object);
    } else {
      ++sample.num_ragged;
    }
  }
  rows.finish();
  sample.header = true;
}

}  // namespace satrap::data
