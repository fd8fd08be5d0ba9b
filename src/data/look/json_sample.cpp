#include "src/data/look/json_sample.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "src/data/look/sample_value.h"

namespace satrap::data {
namespace {

using Json = nlohmann::json;

constexpr char kBetweenJsonElements = '|';
constexpr std::size_t kMaxDepth = 64;     // of objects and arrays in each other
constexpr std::int64_t kRareShare = 100;  // a key in less than one of so many rows is left out

/// A value of a key, with the keys of the objects around it.
struct JsonField {
  std::string path, text;
  bool is_list = false;
  bool is_readable = true;  // false: a list of lists or objects
};

/// Takes the fields of an object from a parser, which asks for nothing that takes longer the more
/// keys there are.
class FieldTaker : public nlohmann::json_sax<Json> {
 public:
  std::vector<JsonField> fields;

  bool null() override { return put(""); }
  bool boolean(bool value) override { return put(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return put(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return put(std::to_string(value)); }
  bool number_float(number_float_t value, const string_t&) override {
    return put(Json(value).dump());
  }
  bool string(string_t& value) override { return put(value); }
  bool binary(binary_t&) override { return false; }
  bool key(string_t& name) override {
    if (num_arrays_ == 0) key_ = name;
    return true;
  }

  bool start_object(std::size_t) override {
    if (num_arrays_ > 0) fields.back().is_readable = false;
    if (depth_ > 0 && num_arrays_ == 0) {
      prefix_ends_.push_back(prefix_.size());
      prefix_ += key_ + ".";
    }
    return ++depth_ <= kMaxDepth;
  }
  bool end_object() override {
    --depth_;
    if (num_arrays_ > 0 || prefix_ends_.empty()) return true;
    prefix_.resize(prefix_ends_.back());
    prefix_ends_.pop_back();
    return true;
  }
  bool start_array(std::size_t) override {
    if (depth_ == 0) return false;
    if (num_arrays_++ == 0) {
      fields.push_back({.path = prefix_ + key_, .text = {}, .is_list = true});
    } else {
      fields.back().is_readable = false;
    }
    return ++depth_ <= kMaxDepth;
  }
  bool end_array() override {
    --depth_;
    --num_arrays_;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override {
    return false;
  }

 private:
  bool put(std::string_view text) {
    if (depth_ == 0) return false;  // the line is no object
    if (num_arrays_ == 0) {
      fields.push_back({.path = prefix_ + key_, .text = sampled_value(text)});
      return true;
    }
    std::string& list = fields.back().text;
    if (list.size() >= kMaxValueBytes) return true;
    if (!list.empty()) list += kBetweenJsonElements;
    list += sampled_value(text);
    return true;
  }

  std::string key_, prefix_;
  std::vector<std::size_t> prefix_ends_;
  std::size_t depth_ = 0, num_arrays_ = 0;
};

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

/// Whether the line is an object, whose fields are taken.
bool take_fields(const std::string& line, std::vector<JsonField>& fields) {
  const auto takes = [&](const std::string& text) {
    FieldTaker taker;
    const bool is_object = Json::sax_parse(text, &taker);
    fields = std::move(taker.fields);
    return is_object;
  };
  return takes(line) || takes(without_bare_words(line));
}

class JsonSample {
 public:
  /// Counts `max_cells` values at most, but for those of the last row.
  JsonSample(Sample& sample, std::int64_t max_cells) : sample_(sample), max_cells_(max_cells) {}

  bool is_full() const { return num_cells_ >= max_cells_; }

  void add_row(std::vector<JsonField>& fields) {
    for (JsonField& field : fields) put(field);
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

  void put(JsonField& field) {
    const auto [place, is_new] = places_.try_emplace(field.path, keys_.size());
    if (is_new) keys_.push_back({.path = field.path});
    Key& key = keys_[place->second];
    key.is_list |= field.is_list;
    key.is_readable &= field.is_readable;
    if (!key.values.empty() && key.values.back().first == sample_.num_rows) {
      key.values.back().second = std::move(field.text);  // the last of equal keys counts
    } else {
      key.values.emplace_back(sample_.num_rows, std::move(field.text));
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
  std::vector<JsonField> fields;
  for (const std::string& line : lines) {
    if (sample.num_rows == max_rows || rows.is_full()) {
      sample.is_whole = false;
      break;
    }
    if (take_fields(line, fields)) {
      rows.add_row(fields);
    } else {
      ++sample.num_ragged;
    }
  }
  rows.finish();
  sample.header = true;
}

}  // namespace satrap::data
