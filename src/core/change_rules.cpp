#include "satrap/core/change_rules.h"

#include <utility>
#include <vector>

#include "src/core/config_node.h"

namespace satrap::config_detail {
namespace {

class RuleCollector final : public ConfigVisitor {
 public:
  explicit RuleCollector(ChangeRule outer) : ConfigVisitor(outer) {}
  ChangeRules take() { return std::move(rules_); }

 protected:
  void field(const FieldInfo& info, FieldRef) override { rules_[path_of(info.name)] = info.resume; }

  bool enter_section(std::string_view name, const PlainValue&, std::string_view) override {
    open(name);
    return true;
  }
  void leave_section() override { open_.pop_back(); }

  bool enter_list(std::string_view name, std::int64_t&, std::string_view) override {
    open(name);
    return false;
  }
  void enter_element(std::int64_t index, std::string_view) override { open(std::to_string(index)); }
  void leave_list() override { open_.pop_back(); }

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
  void leave_named() override { open_.pop_back(); }

 private:
  std::string path_of(std::string_view name) const {
    return open_.empty() ? std::string(name) : join_path(open_.back(), name);
  }
  void open(std::string_view name) {
    open_.push_back(path_of(name));
    rules_[open_.back()] = resume();  // an empty list is a value
  }

  ChangeRules rules_;
  std::vector<std::string> open_;  // paths
};

}  // namespace

ChangeRules change_rules(const Visit& visit, ChangeRule outer) {
  RuleCollector collector(outer);
  visit(collector);
  return collector.take();
}

}  // namespace satrap::config_detail
