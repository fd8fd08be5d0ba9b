#include <utility>

#include "satrap/core/config.h"
#include "src/core/config_rule.h"

namespace satrap::config_detail {
namespace {

/// Writes what it visits as YAML.
class Dumper final : public ConfigVisitor {
 public:
  std::string take_text() { return std::move(text_); }

 protected:
  void field(const FieldInfo& info, FieldRef value) override {
    std::visit([&](const auto* field) { line(info.name, to_yaml(*field, info.rule)); }, value);
  }

  bool enter_section(std::string_view name, const PlainValue& plain, std::string_view) override {
    if (plain.instead != nullptr && !plain.instead->empty()) {
      line(name, to_yaml(*plain.instead));
      return false;
    }
    open(name);
    return true;
  }

  void leave_section() override {
    if (dash_) {  // an element without fields
      text_.append(2 * (begins_.size() - 1), ' ');
      text_ += "- {}\n";
      dash_ = false;
      begins_.pop_back();
      return;
    }
    close(" {}");
  }

  bool enter_list(std::string_view name, std::int64_t&, std::string_view) override {
    open(name);
    return false;
  }

  void enter_element(std::int64_t, std::string_view) override {
    begins_.push_back(text_.size());
    dash_ = true;
  }

  void leave_list() override { close(" []"); }

  std::vector<std::string> enter_named(std::string_view name,
                                       const std::vector<std::string>& keys,
                                       std::string_view) override {
    open(name);
    return keys;
  }

  bool enter_entry(const std::string& key) override {
    open(key);
    return true;
  }

  void leave_named() override { close(" {}"); }

 private:
  // Begins a line with the indentation of the open sections and "key:".
  void line(std::string_view key, const std::string& value) {
    text_.append(2 * begins_.size(), ' ');
    if (dash_) {
      text_[text_.size() - 2] = '-';
      dash_ = false;
    }
    text_ += quote_string(std::string(key)) + ":";
    if (!value.empty()) text_ += " " + value;
    text_ += '\n';
  }

  void open(std::string_view key) {
    line(key, "");
    begins_.push_back(text_.size());
  }

  void close(std::string_view if_empty) {
    if (text_.size() == begins_.back()) text_.insert(text_.size() - 1, if_empty);
    begins_.pop_back();
  }

  std::string text_;
  std::vector<std::size_t> begins_;  // where the content of each open section begins
  bool dash_ = false;                // the next line is the first of a list element
};

}  // namespace

std::string dump(const Visit& visit) {
  Dumper dumper;
  visit(dumper);
  return dumper.take_text();
}

}  // namespace satrap::config_detail
