#include "src/data/text/json_fields.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include <simdjson.h>

#include "satrap/core/error.h"

namespace satrap::data {
namespace {

static_assert(TextBlock::kPadding >= static_cast<std::int64_t>(simdjson::SIMDJSON_PADDING));

using JsonKind = LineValues::Kind;

bool take_digits(std::string_view& text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  text.remove_prefix(end);
  return end > 0;
}

/// Whether this is a number in the grammar of RFC 8259.
bool is_json_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  if (text.starts_with('0') && text.size() > 1 && text[1] >= '0' && text[1] <= '9') return false;
  if (!take_digits(text)) return false;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (!take_digits(text)) return false;
  }
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
    if (!take_digits(text)) return false;
  }
  return text.empty();
}

}  // namespace

class JsonFields::Reader {
 public:
  explicit Reader(const NamedColumns& columns) {
    for (std::size_t i = 0; i < columns.names.size(); ++i) {
      const std::string& name = columns.names[i];
      targets_[name].column = static_cast<std::ptrdiff_t>(i);
      for (std::size_t dot = 0; (dot = name.find('.', dot)) != std::string::npos; ++dot) {
        targets_[name.substr(0, dot)].holds_columns = true;
      }
    }
  }

  simdjson::error_code read(const char* line, std::size_t size, LineValues& found) {
    constexpr std::size_t kLeastBytes = 4096;
    if (size > parser_.capacity()) {
      if (const auto error = parser_.allocate(std::bit_ceil(std::max(size, kLeastBytes)))) {
        return error;
      }
    }
    found_ = &found;
    next_seen_ = 0;
    path_.clear();
    simdjson::ondemand::document document;
    simdjson::ondemand::object object;
    const simdjson::padded_string_view text(line, size, size + simdjson::SIMDJSON_PADDING);
    if (const auto error = parser_.iterate(text).get(document)) return error;
    if (const auto error = document.get_object().get(object)) return error;
    if (const auto error = read_object(object)) return error;
    const bool is_at_end = document.current_location().error() == simdjson::OUT_OF_BOUNDS;
    return is_at_end ? simdjson::SUCCESS : simdjson::TAPE_ERROR;
  }

 private:
  using Value = LineValues::Value;

  /// The meaning of a path of keys to the schema.
  struct Target {
    std::ptrdiff_t column = -1;  // -1: none
    bool holds_columns = false;  // it is the beginning of the path of one
  };
  struct Seen {
    std::string path;
    const Target* target = nullptr;
  };

  simdjson::error_code read_object(simdjson::ondemand::object& object) {
    const std::size_t depth = path_.size();
    for (auto result : object) {
      simdjson::ondemand::field field;
      if (const auto error = std::move(result).get(field)) return error;
      std::string_view key;
      if (const auto error = field.unescaped_key().get(key)) return error;
      if (depth > 0) {
        path_.resize(depth);
        key = path_.append(1, '.').append(key);
      }
      const Target* const target = target_of(key);
      if (target == nullptr) continue;
      if (depth == 0 && target->holds_columns) path_ = key;
      const auto error = read_value(field.value(), *target);
      path_.resize(depth);
      if (error) return error;
    }
    return simdjson::SUCCESS;
  }

  /// Null: the schema does not read this path. Lines mostly have the same keys in the same order.
  const Target* target_of(std::string_view path) {
    constexpr std::size_t kMaxSeen = 1024;
    const std::size_t at = next_seen_++;
    if (at < seen_.size() && seen_[at].path == path) return seen_[at].target;
    const auto found = targets_.find(path);
    const Target* const target = found == targets_.end() ? nullptr : &found->second;
    if (at == seen_.size() && at < kMaxSeen) seen_.emplace_back();
    if (at < seen_.size()) {
      seen_[at].path = path;
      seen_[at].target = target;
    }
    return target;
  }

  simdjson::error_code read_value(simdjson::ondemand::value& value, const Target& target) {
    Value read;
    const char first = value.raw_json_token().front();
    if (first == '{') {
      read = {.kind = JsonKind::kNone, .text = "{...}"};
      if (target.holds_columns) {
        simdjson::ondemand::object object;
        if (const auto error = value.get_object().get(object)) return error;
        if (const auto error = read_object(object)) return error;
      }
    } else if (first == '[') {
      if (const auto error = read_array(value, read)) return error;
    } else if (const auto error = read_scalar(value, read)) {
      return error;
    }
    if (target.column >= 0) found_->values[static_cast<std::size_t>(target.column)] = read;
    return simdjson::SUCCESS;
  }

  simdjson::error_code read_array(simdjson::ondemand::value& value, Value& read) {
    simdjson::ondemand::array array;
    if (const auto error = value.get_array().get(array)) return error;
    read.kind = JsonKind::kList;
    read.begin = found_->elements.size();
    for (auto result : array) {
      simdjson::ondemand::value element;
      if (const auto error = std::move(result).get(element)) return error;
      const char first = element.raw_json_token().front();
      if (first == '{' || first == '[') {
        read = {.kind = JsonKind::kNone, .text = first == '{' ? "[{...}]" : "[[...]]"};
        continue;
      }
      Value scalar;
      if (const auto error = read_scalar(element, scalar)) return error;
      if (scalar.kind == JsonKind::kText) {
        found_->elements.push_back({scalar.text, scalar.is_number});
      }
      if (scalar.kind == JsonKind::kNone) read = scalar;
    }
    read.end = found_->elements.size();
    return simdjson::SUCCESS;
  }

  static simdjson::error_code read_scalar(simdjson::ondemand::value& value, Value& read) {
    std::string_view token = value.raw_json_token();
    if (token.front() == '"') {
      read.kind = JsonKind::kText;
      return value.get_string().get(read.text);
    }
    token = token.substr(0, token.find_last_not_of(" \t\r\n") + 1);
    const bool is_number = is_json_number(token);
    if (!is_number && (token == "null" || token == "NaN")) return simdjson::SUCCESS;
    const bool is_value = is_number || token == "true" || token == "false";
    read.kind = is_value ? JsonKind::kText : JsonKind::kNone;
    read.is_number = is_number;
    read.text = token;
    return simdjson::SUCCESS;
  }

  std::map<std::string, Target, std::less<>> targets_;  // by path
  std::vector<Seen> seen_;                              // keys of the lines before, in their order
  simdjson::ondemand::parser parser_;

  // About the line that is being read:
  LineValues* found_ = nullptr;
  std::size_t next_seen_ = 0;
  std::string path_;  // of the object
};

JsonFields::JsonFields(const Schema& /*schema*/, const NamedColumns& columns)
    : reader_(std::make_unique<Reader>(columns)) {}

JsonFields::~JsonFields() = default;

bool JsonFields::find(const char* line, const char* end, LineValues& found) {
  const auto error = reader_->read(line, static_cast<std::size_t>(end - line), found);
  if (error == simdjson::SUCCESS) return true;
  if (error == simdjson::MEMALLOC) throw std::bad_alloc();
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  const char* const first = std::find_if_not(line, end, is_blank);
  reason_ = "expected a JSON object on the line";
  if (first < end && *first == '{') {
    std::string_view message = simdjson::error_message(error);
    while (message.ends_with('.')) message.remove_suffix(1);
    reason_ += concat(" (", message, ")");
  } else if (first < end && *first == '[') {
    reason_ += "; `jq -c '.[]'` writes the elements of an array so";
  }
  fault_ = {.reason = reason_,
            .field = {line, static_cast<std::size_t>(end - line)},
            .shows_field = true};
  return false;
}

}  // namespace satrap::data
