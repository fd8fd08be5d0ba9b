#include <algorithm>
#include <span>

#include "satrap/core/config.h"
#include "satrap/core/error.h"
#include "src/core/config_node.h"
#include "src/core/config_rule.h"

namespace satrap::config_detail {
namespace {

struct Entry {
  std::string path;
  std::string facts;  // "integer, default 4, >= 0"
  std::string doc;
};

std::string type_name(const bool&) { return "true or false"; }
std::string type_name(const std::int64_t&) { return "integer"; }
std::string type_name(const double&) { return "number"; }
std::string type_name(const std::string&) { return "string"; }
std::string type_name(const std::vector<std::int64_t>&) { return "list of integers"; }
std::string type_name(const std::vector<double>&) { return "list of numbers"; }
std::string type_name(const std::vector<std::string>&) { return "list of strings"; }

using Parts = std::span<const std::string>;

// Whether `asked` names `pattern` or an enclosing section. A `*` of the pattern matches nothing or
// a `*`, or, with `names`, any one part of `asked`.
bool matches(Parts pattern, Parts asked, bool names) {
  if (asked.empty()) return true;
  if (pattern.empty()) return false;
  const Parts rest = pattern.subspan(1);
  if (pattern[0] != "*") return pattern[0] == asked[0] && matches(rest, asked.subspan(1), names);
  const bool takes = names || asked[0] == "*";
  return (takes && matches(rest, asked.subspan(1), names)) || matches(rest, asked, names);
}

// `pattern` as the user who wrote `asked` may have meant it: a name for each `*`, or no `*`.
std::string as_asked(const std::string& pattern, const std::string& asked) {
  const std::vector<std::string> pattern_parts = split_path(pattern);
  const std::vector<std::string> asked_parts = split_path(asked);
  const bool aligned = pattern_parts.size() == asked_parts.size();
  std::string path;
  for (std::size_t i = 0; i < pattern_parts.size(); ++i) {
    const bool star = pattern_parts[i] == "*";
    if (star && aligned) path = join_path(path, asked_parts[i]);
    if (!star) path = join_path(path, pattern_parts[i]);
  }
  return path;
}

/// Collects the documentation of what it visits.
class Explainer final : public ConfigVisitor {
 public:
  std::vector<std::string> keys() const {
    std::vector<std::string> paths;
    for (const Entry& entry : entries_) paths.push_back(entry.path);
    return paths;
  }

  std::string explain(const std::string& asked) const {
    // "tables.dim" is first the key `dim` of every table, then the table named `dim`.
    std::string text = matching(asked, false);
    if (text.empty()) text = matching(asked, true);
    if (!text.empty()) return text;
    std::vector<std::string> candidates;
    for (const Entry& entry : entries_) candidates.push_back(as_asked(entry.path, asked));
    const std::string near = nearest(asked, candidates);
    throw Error(ErrorCode::kInvalidConfig,
                concat(asked, ": unknown key", near.empty() ? "" : "; did you mean " + near + "?"));
  }

 protected:
  void field(const FieldInfo& info, FieldRef value) override {
    std::string facts = std::visit(
        [&](const auto* field) {
          const std::string fallback = ", default " + to_yaml(*field, info.rule);
          const std::string_view word = info.rule.zero_word;
          return type_name(*field) + (word.empty() ? "" : concat(" or ", word)) +
                 (info.rule.required ? ", required" : fallback);
        },
        value);
    const std::string rule_text = describe_rule(info.rule);
    if (!rule_text.empty()) facts += ", " + rule_text;
    add(info.name, facts, info.doc);
  }

  bool enter_section(std::string_view name,
                     const PlainValue& plain,
                     std::string_view doc) override {
    enter(name,
          plain.instead != nullptr ? "name of a preset or section"
          : plain.field.empty()    ? "section"
                                   : concat("section, or its ", plain.field),
          doc);
    return true;
  }

  void leave_section() override {
    if (!in_element_.empty() && in_element_.back() == path_.size()) {
      in_element_.pop_back();
      if (hides_.back()) --hidden_;
      hides_.pop_back();
    }
    path_.pop_back();
  }

  // Only the fresh element is documented, not those of a default list before it.
  bool enter_list(std::string_view name, std::int64_t& size, std::string_view doc) override {
    enter(name, "list of sections", doc);
    documented_elements_.push_back(size++);
    return false;
  }

  void enter_element(std::int64_t index, std::string_view) override {
    hides_.push_back(index != documented_elements_.back());
    if (hides_.back()) ++hidden_;
    path_.emplace_back("*");
    in_element_.push_back(path_.size());
  }

  void leave_list() override {
    documented_elements_.pop_back();
    path_.pop_back();
  }

  std::vector<std::string> enter_named(std::string_view name,
                                       const std::vector<std::string>& keys,
                                       std::string_view doc) override {
    enter(name, "sections by name; `default` is the base of the others", doc);
    return keys;
  }

  bool enter_entry(const std::string& key) override {
    if (key != "default") return false;
    path_.emplace_back("*");
    return true;
  }

  void leave_named() override { path_.pop_back(); }

 private:
  void add(std::string_view name, const std::string& facts, std::string_view doc) {
    if (hidden_ > 0) return;
    entries_.push_back({join_path(path(), name), facts, std::string(doc)});
  }

  void enter(std::string_view name, const std::string& facts, std::string_view doc) {
    add(name, facts, doc);
    path_.emplace_back(name);
  }

  std::string matching(const std::string& asked, bool names) const {
    const std::vector<std::string> asked_parts = split_path(asked);
    std::string text;
    for (const Entry& entry : entries_) {
      if (!matches(split_path(entry.path), asked_parts, names)) continue;
      text += concat(entry.path, " (", entry.facts, ")\n    ", entry.doc, "\n");
    }
    return text;
  }

  std::string path() const {
    std::string path;
    for (const std::string& part : path_) path = join_path(path, part);
    return path;
  }

  std::vector<Entry> entries_;
  std::vector<std::string> path_;
  std::vector<std::int64_t> documented_elements_;  // of the open lists
  std::vector<std::size_t> in_element_;            // depth of the open elements
  std::vector<bool> hides_;                        // of the open elements
  int hidden_ = 0;                                 // how many of them hide
};

}  // namespace

std::string explain(const Visit& visit, const std::string& path) {
  Explainer explainer;
  visit(explainer);
  return explainer.explain(path);
}

std::vector<std::string> keys(const Visit& visit) {
  Explainer explainer;
  visit(explainer);
  return explainer.keys();
}

}  // namespace satrap::config_detail
