#include "satrap/core/config.h"
#include "src/core/config_rule.h"

namespace satrap::config_detail {
// Begins a line with the indentation of the open sections and "key:".
void Dumper::line(std::string_view key, const std::string& value) {
  text_.append(2 * begins_.size(), ' ');
  if (dash_) {
    text_[text_.size() - 2] = '-';
    dash_ = false;
  }
  text_ += quote_string(std::string(key)) + ":";
  if (!value.empty()) text_ += " " + value;
  text_ += '\n';
}

void Dumper::open(std::string_view key) {
  line(key, "");
  begins_.push_back(text_.size());
}

void Dumper::close(std::string_view if_empty) {
  if (text_.size() == begins_.back()) text_.insert(text_.size() - 1, if_empty);
  begins_.pop_back();
}

void Dumper::field(std::string_view name, bool& value, std::string_view) {
  line(name, to_yaml(value));
}
void Dumper::field(std::string_view name, std::int64_t& value, std::string_view, const FieldRule&) {
  line(name, to_yaml(value));
}
void Dumper::field(std::string_view name, double& value, std::string_view, const FieldRule&) {
  line(name, to_yaml(value));
}
void Dumper::field(std::string_view name, std::string& value, std::string_view, const FieldRule&) {
  line(name, to_yaml(value));
}
void Dumper::field(std::string_view name,
                   std::vector<std::int64_t>& value,
                   std::string_view,
                   const FieldRule&) {
  line(name, to_yaml(value));
}
void Dumper::field(std::string_view name,
                   std::vector<double>& value,
                   std::string_view,
                   const FieldRule&) {
  line(name, to_yaml(value));
}
void Dumper::field(std::string_view name,
                   std::vector<std::string>& value,
                   std::string_view,
                   const FieldRule&) {
  line(name, to_yaml(value));
}

bool Dumper::enter_section(std::string_view name, std::string_view) {
  open(name);
  return true;
}

bool Dumper::enter_section_or_preset(std::string_view name, std::string& preset, std::string_view) {
  if (!preset.empty()) {
    line(name, to_yaml(preset));
    return false;
  }
  open(name);
  return true;
}

void Dumper::leave_section() {
  if (dash_) {  // an element without fields
    text_.append(2 * (begins_.size() - 1), ' ');
    text_ += "- {}\n";
    dash_ = false;
    begins_.pop_back();
    return;
  }
  close(" {}");
}

bool Dumper::enter_list(std::string_view name, std::int64_t&, std::string_view) {
  open(name);
  return false;
}

void Dumper::enter_element(std::int64_t) {
  begins_.push_back(text_.size());
  dash_ = true;
}

void Dumper::leave_list() { close(" []"); }

std::vector<std::string> Dumper::enter_named(std::string_view name,
                                             const std::vector<std::string>& keys,
                                             std::string_view) {
  open(name);
  return keys;
}

bool Dumper::enter_entry(const std::string& key) {
  open(key);
  return true;
}

void Dumper::leave_named() { close(" {}"); }

}  // namespace satrap::config_detail
