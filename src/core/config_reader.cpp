#include <algorithm>
#include <deque>
#include <type_traits>
#include <utility>

#include "satrap/core/config.h"
#include "satrap/core/error.h"
#include "src/core/config_node.h"
#include "src/core/config_rule.h"
#include "src/core/config_scalar.h"

namespace satrap::config_detail {
namespace {

// One open section, list, or map of named entries.
struct Frame {
  const Node* node;  // null: the user wrote nothing
  std::string path;
  const Node* base;        // the `default` entry this one starts as; null: none
  bool may_be_incomplete;  // required fields may be missing
  std::vector<std::string> known = {};
};

/// Fills what it visits from a file and overrides, collecting problems until finish().
class Reader final : public ConfigVisitor {
 public:
  Reader(const std::string& path,
         const std::vector<std::string>& overrides,
         std::vector<std::string> known_keys)
      : known_keys_(std::move(known_keys)) {
    root_.source = {path.empty() ? "command line" : path, path.empty() ? 0 : 1};
    if (!path.empty()) root_ = parse_file(path, problems_);
    for (const std::string& text : overrides) apply_override(root_, text, problems_);
    frames_.push_back({&root_, "", nullptr, false});
  }
  Reader(const std::string& text, const std::string& name, std::vector<std::string> known_keys)
      : known_keys_(std::move(known_keys)) {
    root_ = parse_text(text, name, problems_);
    frames_.push_back({&root_, "", nullptr, false});
  }

  // Called after the visit of the root. Throws if there was any problem.
  ConfigOrigins finish() {
    check_unknown_keys();
    problems_.throw_if_any();
    return std::move(origins_);
  }

 protected:
  void field(const FieldInfo& info, FieldRef value) override {
    const Node* node = take(info.name);
    const std::string path = join_path(top().path, info.name);
    if (node != nullptr) {
      std::visit([&](auto* field) { read(*node, path, *field, info.rule); }, value);
    } else if (info.rule.required && !is_optional(info.name)) {
      problems_.add(where(), path, "required, but missing");
    }
  }

  void former(std::string_view name, std::string& value) override {
    if (top().node == nullptr || top().node->find(name) == nullptr) return;
    read(*take(name), join_path(top().path, name), value, {});
  }

  bool enter_section(std::string_view name, const PlainValue& plain, std::string_view) override {
    const Node* node = take(name);
    if (plain.instead != nullptr && is_text(node, *plain.instead)) return false;
    const Node* base = top().base == nullptr ? nullptr : top().base->find(name);
    node = as_section(node, plain.field);
    if (base != nullptr) base = as_section(base, plain.field);
    const std::string path = join_path(top().path, name);
    return enter(node, path, base, top().may_be_incomplete);
  }

  void leave_section() override {
    check_unknown_keys();
    frames_.pop_back();
  }

  bool enter_list(std::string_view name, std::int64_t& size, std::string_view) override {
    const Node* node = take(name);
    const std::string path = join_path(top().path, name);
    if (node != nullptr && refuse_plain(*node, path)) node = nullptr;
    if (node != nullptr && node->kind == Node::Kind::kList) {
      frames_.push_back({node, path, nullptr, top().may_be_incomplete});
      size = static_cast<std::int64_t>(node->children.size());
      return true;
    }
    if (node != nullptr && node->kind == Node::Kind::kMap) {
      // Overrides of elements of the default list: keys are indices.
      check_indices(*node, path, size);
    } else if (node != nullptr && node->kind == Node::Kind::kScalar) {
      problems_.add(node->source, path, expected("a list", *node));
      node = nullptr;
    }
    frames_.push_back({node, path, nullptr, true});
    return false;
  }

  void enter_element(std::int64_t index, std::string_view plain) override {
    const Frame& list = top();
    const Node* node = nullptr;
    const std::string name = std::to_string(index);
    if (list.node != nullptr && list.node->kind == Node::Kind::kList) {
      node = &list.node->children[static_cast<std::size_t>(index)];
    } else if (list.node != nullptr) {
      node = list.node->find(name);
    }
    const std::string path = join_path(list.path, name);
    node = as_section(node, plain);
    if (!enter(node, path, nullptr, list.may_be_incomplete)) {
      frames_.push_back({nullptr, path, nullptr, true});  // an element is visited in any case
    }
  }

  std::vector<std::string> enter_named(std::string_view name,
                                       const std::vector<std::string>& keys,
                                       std::string_view) override {
    const Node* node = take(name);
    const std::string path = join_path(top().path, name);
    if (node != nullptr && refuse_plain(*node, path)) node = nullptr;
    if (node != nullptr && node->kind != Node::Kind::kMap) {
      if (node->kind != Node::Kind::kNull) {
        problems_.add(node->source, path, expected("a section of named entries", *node));
      }
      node = nullptr;
    }
    std::vector<std::string> all = keys;
    if (node != nullptr) {
      for (const std::string& key : node->keys) {
        if (std::find(all.begin(), all.end(), key) == all.end()) all.push_back(key);
      }
    }
    const Node* base = node == nullptr ? nullptr : node->find("default");
    frames_.push_back({node, path, base, top().may_be_incomplete});
    return all;
  }

  bool enter_entry(const std::string& key) override {
    const Frame& named = top();
    const Node* node = named.node == nullptr ? nullptr : named.node->find(key);
    // Required fields may be missing in entries that the user did not write, and in `default`.
    const bool may_be_incomplete = node == nullptr || key == "default" || named.may_be_incomplete;
    return enter(node, join_path(named.path, key), named.base, may_be_incomplete);
  }

  void leave_list() override { frames_.pop_back(); }
  void leave_named() override { frames_.pop_back(); }

 private:
  template <class T>
  void read(const Node& node, const std::string& path, T& value, const FieldRule& rule) {
    if (refuse_plain(node, path)) return;
    T parsed{};
    if constexpr (std::is_same_v<T, std::int64_t>) {
      if (!rule.zero_word.empty() && node.text == rule.zero_word) {
        value = 0;
        return;
      }
    }
    std::string problem = parse(node, parsed);
    if (problem.empty()) problem = broken_rule(parsed, rule);
    if (!problem.empty() && !rule.zero_word.empty()) {
      problem += concat("; a word that is allowed: ", rule.zero_word);
    }
    if (problem.empty()) {
      value = std::move(parsed);
    } else {
      problems_.add(node.source, path, problem);
    }
  }

  template <class T>
  void read(const Node& node,
            const std::string& path,
            std::vector<T>& values,
            const FieldRule& rule) {
    if (refuse_plain(node, path)) return;
    std::vector<T> parsed;
    if (node.kind == Node::Kind::kScalar) {
      parsed.emplace_back();
      read(node, path, parsed.back(), rule);
    } else if (node.kind == Node::Kind::kList) {
      for (const Node& element : node.children) {
        const std::string element_path = join_path(path, std::to_string(parsed.size()));
        parsed.emplace_back();
        read(element, element_path, parsed.back(), rule);
      }
    } else {
      problems_.add(node.source, path, expected("a list", node));
    }
    values = std::move(parsed);
  }

  /// Whether a text stands where a section could, by default the one that is there.
  static bool is_text(const Node* node, std::string& text) {
    if (node == nullptr) return !text.empty();
    const bool is_scalar = node->kind == Node::Kind::kScalar;
    text = is_scalar ? node->text : "";
    return is_scalar;
  }

  /// A plain value where a section is expected means its field `plain`. Overrides may have set
  /// other fields beside it.
  const Node* as_section(const Node* node, std::string_view plain) {
    if (node == nullptr || plain.empty() || node->kind == Node::Kind::kNull) return node;
    Node section = node->kind == Node::Kind::kMap ? *node : with_plain(*node);
    Node* const value = section.find(kPlainKey);
    if (value == nullptr) return node;
    const auto key = section.keys.begin() + (value - section.children.data());
    if (section.find(plain) == nullptr) {
      *key = plain;
    } else {
      section.children.erase(section.children.begin() + (key - section.keys.begin()));
      section.keys.erase(key);
    }
    return &made_.emplace_back(std::move(section));
  }

  /// Whether an override sets something in a value that is no section: a problem.
  bool refuse_plain(const Node& node, const std::string& path) {
    const Node* const plain = node.find(kPlainKey);
    if (plain == nullptr) return false;
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      if (node.keys[i] == kPlainKey) continue;
      problems_.add(node.children[i].source, path,
                    concat("is the value ", describe(*plain), " (", plain->source.text, "), so ",
                           node.keys[i], " cannot be set in it"));
    }
    return true;
  }

  Frame& top() { return frames_.back(); }

  // The source of the open section, for messages about what it lacks.
  const Source& where() const {
    for (std::size_t i = frames_.size(); i-- > 0;) {
      if (frames_[i].node != nullptr) return frames_[i].node->source;
    }
    return root_.source;
  }

  const Node* peek(std::string_view name) {
    return top().node == nullptr ? nullptr : top().node->find(name);
  }

  // The value of `name` in the open section; records `name` as a known key.
  const Node* take(std::string_view name) {
    top().known.emplace_back(name);
    const Node* node = peek(name);
    if (node != nullptr) origins_[join_path(top().path, name)] = node->source.text;
    return node;
  }

  bool is_optional(std::string_view name) {
    return top().may_be_incomplete || (top().base != nullptr && top().base->find(name) != nullptr);
  }

  bool enter(const Node* node, const std::string& path, const Node* base, bool may_be_incomplete) {
    if (node != nullptr && refuse_plain(*node, path)) return false;
    if (node != nullptr && node->kind != Node::Kind::kMap && node->kind != Node::Kind::kNull) {
      problems_.add(node->source, path, expected("a section", *node));
      return false;
    }
    if (node != nullptr) origins_[path] = node->source.text;
    frames_.push_back({node, path, base, may_be_incomplete});
    return true;
  }

  void check_indices(const Node& node, const std::string& path, std::int64_t size) {
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      std::int64_t index = -1;
      if (!parse_index(node.keys[i], index) || index >= size) {
        problems_.add(node.children[i].source, path,
                      concat("a list of ", size, " has no element ", node.keys[i]));
      }
    }
  }

  void check_unknown_keys() {
    const Frame& frame = top();
    if (frame.node == nullptr) return;
    for (std::size_t i = 0; i < frame.node->keys.size(); ++i) {
      const std::string& key = frame.node->keys[i];
      if (std::find(frame.known.begin(), frame.known.end(), key) != frame.known.end()) continue;
      problems_.add(frame.node->children[i].source, join_path(frame.path, key),
                    "unknown key" + suggestion(frame, key));
    }
  }

  std::string suggestion(const Frame& frame, const std::string& key) const {
    const auto did_you_mean = [](const std::string& path) {
      return "; did you mean " + path + "?";
    };
    const std::string sibling = nearest(key, frame.known);
    if (!sibling.empty()) return did_you_mean(join_path(frame.path, sibling));
    for (const std::string& known : known_keys_) {
      if (split_path(known).back() == key) return did_you_mean(known);
    }
    std::string text = "; known here:";
    for (const std::string& known : frame.known) text += " " + known;
    return text;
  }

  const std::vector<std::string> known_keys_;
  Problems problems_;
  ConfigOrigins origins_;
  Node root_;
  std::vector<Frame> frames_;
  std::deque<Node> made_;  // sections that were written as plain values
};

}  // namespace

ConfigOrigins load(const Visit& visit,
                   const std::string& path,
                   const std::vector<std::string>& overrides,
                   std::vector<std::string> known_keys) {
  Reader reader(path, overrides, std::move(known_keys));
  visit(reader);
  return reader.finish();
}

void load_text(const Visit& visit,
               const std::string& text,
               const std::string& name,
               std::vector<std::string> known_keys) {
  Reader reader(text, name, std::move(known_keys));
  visit(reader);
  reader.finish();
}

}  // namespace satrap::config_detail
