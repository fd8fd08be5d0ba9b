#include "satrap/core/config_keys.h"

#include <string_view>
#include <utility>
#include <variant>

#include "src/core/config_node.h"

namespace satrap::config_detail {
namespace {

/// Collects the keys of what it visits.
class KeyCollector final : public ConfigVisitor {
 public:
  std::vector<ConfigKey> take() { return std::move(keys_); }

 protected:
  void field(const FieldInfo& info, FieldRef value) override {
    const bool is_bool = std::holds_alternative<bool*>(value);
    keys_.push_back(
        {.path = path_of(info.name),
         .choices = is_bool ? std::vector<std::string>{"true", "false"} : info.rule.one_of});
  }

  bool enter_section(std::string_view name, const PlainValue& plain, std::string_view) override {
    if (plain.instead != nullptr) keys_.push_back({.path = path_of(name), .choices = {}});
    sections_.emplace_back(name);
    return true;
  }
  void leave_section() override { sections_.pop_back(); }

  bool enter_list(std::string_view, std::int64_t& size, std::string_view) override {
    size = 0;  // nothing to visit
    return true;
  }
  void enter_element(std::int64_t, std::string_view) override {}
  void leave_list() override {}

  std::vector<std::string> enter_named(std::string_view name,
                                       const std::vector<std::string>&,
                                       std::string_view) override {
    sections_.emplace_back(name);
    return {};
  }
  bool enter_entry(const std::string& key) override {
    sections_.push_back(key);
    return true;
  }
  void leave_named() override { sections_.pop_back(); }

 private:
  std::string path_of(std::string_view name) const {
    std::string path;
    for (const std::string& section : sections_) path = join_path(path, section);
    return join_path(path, name);
  }

  std::vector<ConfigKey> keys_;
  std::vector<std::string> sections_;  // that are open
};

}  // namespace

std::vector<ConfigKey> value_keys(const Visit& visit) {
  KeyCollector collector;
  visit(collector);
  return collector.take();
}

}  // namespace satrap::config_detail
