#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace satrap {

/// How a config struct describes itself. Each struct lists its fields once, with their rules and
/// documentation; loading, dumping, `config explain` and "did you mean" all follow from that list:
///
///   struct OptimizerConfig {
///     std::string type = "adagrad";
///     double lr = 0.02;
///     void visit(ConfigVisitor& v) {
///       v.field("type", type, "Row optimizer.", {.one_of = {"sgd", "adagrad"}});
///       v.field("lr", lr, "Learning rate.", {.min = 0, .min_exclusive = true});
///     }
///   };
///
/// A struct may name the field that a plain value means where its section is expected, so that
/// `optimizer: adagrad` stands for `optimizer: {type: adagrad}`:
///
///     static constexpr std::string_view kPlain = "type";
///
/// Rules of a single field are checked here, with the file:line of the value. Rules that tie
/// several fields together belong in a validate() of the struct's module.
struct FieldRule {
  std::vector<std::string> one_of = {};  // allowed strings; empty: any
  double min = -1e308;                   // numbers, and each element of a list of numbers
  double max = 1e308;
  bool min_exclusive = false;
  bool required = false;            // must be written by the user
  std::string_view zero_word = {};  // of an integer: how 0 is written, such as `auto`; the bounds
                                    // are those of other values
};

/// One field of a config struct as its visitors see it, and where its value is.
struct FieldInfo {
  std::string_view name;
  std::string_view doc;
  const FieldRule& rule;
};
using FieldRef = std::variant<bool*,
                              std::int64_t*,
                              double*,
                              std::string*,
                              std::vector<std::int64_t>*,
                              std::vector<double>*,
                              std::vector<std::string>*>;

class ConfigVisitor;

template <class T>
concept ConfigStruct = requires(T value, ConfigVisitor& visitor) { value.visit(visitor); };

namespace config_detail {
template <class T>
constexpr std::string_view plain_field() {
  if constexpr (requires { T::kPlain; }) {
    return T::kPlain;
  } else {
    return "";
  }
}
}  // namespace config_detail

class ConfigVisitor {
 public:
  virtual ~ConfigVisitor() = default;

  /// A scalar or a list of scalars. A list field also takes a single scalar (a list of one).
  template <class T>
    requires std::constructible_from<FieldRef, T*>
  void field(std::string_view name, T& value, std::string_view doc, const FieldRule& rule = {}) {
    field({name, doc, rule}, &value);
  }

  /// A nested struct: a mapping in the file.
  template <ConfigStruct T>
  void section(std::string_view name, T& value, std::string_view doc) {
    if (!enter_section(name, config_detail::plain_field<T>(), doc)) return;
    value.visit(*this);
    leave_section();
  }

  /// A nested struct with named presets: `name: preset` or `name: {fields}`. `preset` becomes empty
  /// when the user wrote a mapping and keeps its default when the user wrote nothing; the fields
  /// are read only when it is empty. The struct's module checks which presets exist.
  template <ConfigStruct T>
  void section_or_preset(std::string_view name,
                         std::string& preset,
                         T& value,
                         std::string_view doc) {
    if (!enter_section_or_preset(name, preset, doc)) return;
    value.visit(*this);
    leave_section();
  }

  /// A list of structs. A list written by the user replaces the default one.
  template <ConfigStruct T>
  void list(std::string_view name, std::vector<T>& values, std::string_view doc) {
    auto size = static_cast<std::int64_t>(values.size());
    if (enter_list(name, size, doc)) values.clear();
    values.resize(static_cast<std::size_t>(size));
    for (std::int64_t i = 0; i < size; ++i) {
      enter_element(i, config_detail::plain_field<T>());
      values[static_cast<std::size_t>(i)].visit(*this);
      leave_section();
    }
    leave_list();
  }

  /// Structs by name. The entry `default` (always present afterwards) is read first, and every
  /// other entry starts as a copy of it.
  template <ConfigStruct T>
  void named(std::string_view name, std::map<std::string, T>& values, std::string_view doc) {
    std::vector<std::string> keys;
    for (const auto& [key, unused] : values) keys.push_back(key);
    keys = enter_named(name, keys, doc);
    T& fallback = values["default"];
    visit_entry("default", fallback);
    for (const std::string& key : keys) {
      if (key == "default") continue;
      visit_entry(key, values.try_emplace(key, fallback).first->second);
    }
    leave_named();
  }

 protected:
  virtual void field(const FieldInfo& info, FieldRef value) = 0;
  // True: visit the fields, then leave_section. False: nothing to visit. `plain`: the field that a
  // plain value means; "": none.
  virtual bool enter_section(std::string_view name,
                             std::string_view plain,
                             std::string_view doc) = 0;
  virtual bool enter_section_or_preset(std::string_view name,
                                       std::string& preset,
                                       std::string_view doc) = 0;
  virtual void leave_section() = 0;
  // Sets `size` to the number of elements to visit. Returns true if all of them are new.
  virtual bool enter_list(std::string_view name, std::int64_t& size, std::string_view doc) = 0;
  virtual void enter_element(std::int64_t index, std::string_view plain) = 0;
  virtual void leave_list() = 0;
  virtual std::vector<std::string> enter_named(std::string_view name,
                                               const std::vector<std::string>& keys,
                                               std::string_view doc) = 0;
  virtual bool enter_entry(const std::string& key) = 0;
  virtual void leave_named() = 0;

 private:
  template <ConfigStruct T>
  void visit_entry(const std::string& key, T& value) {
    if (!enter_entry(key)) return;
    value.visit(*this);
    leave_section();
  }
};

/// Where a value came from, for messages of later validation: "train.yaml:12", or "command line:
/// train.mode=hybrid". Keyed by dotted path; contains the values and sections that the user wrote,
/// not those left at their defaults.
using ConfigOrigins = std::map<std::string, std::string>;

/// Fills `config` from a YAML file and `key.path=value` overrides, which win over the file. An
/// empty `path` means no file, an empty file means all defaults.
///
/// The value of an override is a YAML flow collection or quoted scalar if it begins like one ("[",
/// "{", a quote), otherwise plain text, so that `data.train.path=*.gz` needs no quoting. It
/// replaces the old one. `~key.path` takes back what was written before it. A part of the key path
/// may be the index of an existing list element or the name of an entry: `features.0.dim=8`,
/// `tables.user.dim=8`.
///
/// Throws Error(kInvalidConfig) with one line for *every* problem, each with its file:line: a file
/// that cannot be read or parsed, an unknown key (with the nearest known one), a wrong type, a
/// duplicate key, a value that breaks its rule, a required value that is missing. `config` is then
/// unchanged.
template <ConfigStruct T>
ConfigOrigins load_config(T& config,
                          const std::string& path,
                          const std::vector<std::string>& overrides = {});

/// The same from the text of a file of this name.
template <ConfigStruct T>
void load_config_text(T& config, const std::string& text, const std::string& name);

/// The whole config as YAML text that load_config reads back to the same values.
template <ConfigStruct T>
std::string dump_config(T config);

/// One value of a config: {"train.epochs", "1"}. A list of scalars is one value, "[a, b]"; elements
/// of lists of structs have their index in the path.
struct ConfigValue {
  std::string path;
  std::string text;
  friend bool operator==(const ConfigValue&, const ConfigValue&) = default;
};

/// The values in text that dump_config wrote, in the same order. Throws Error(kInvalidConfig), as
/// load_config does, with `name` as the name of the file.
std::vector<ConfigValue> config_values(const std::string& yaml, const std::string& name);

/// Documentation of one key (dotted path; list indices and names of named entries may be left out
/// or given as `*`) or of a whole section; with an empty path, of everything: type, default, rule,
/// text. Throws Error(kInvalidConfig) with the nearest known key when there is none.
template <ConfigStruct T>
std::string explain_config(const std::string& path);

/// `text` as a YAML scalar, quoted where it would not read back as this string.
std::string yaml_scalar(const std::string& text);

/// The element of `known` nearest to `word` by edit distance, or "" if none is near enough to be a
/// likely typo.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace satrap

#include "satrap/core/config_impl.h"  // the templates above
