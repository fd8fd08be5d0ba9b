#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "satrap/core/choice.h"

namespace satrap {

/// The effect of another value of a key on a run that continues from a checkpoint.
enum class ChangeKind {
  kImpossible,  // the checkpoint no longer fits
  kInput,       // the next steps read other rows of data, or other versions of embedding rows
  kTraining,    // the next steps train differently on the same input
  kOutput,      // what is learned stays the same
};
struct ChangeRule {
  ChangeKind kind = ChangeKind::kTraining;
  std::string_view reason = {};  // why it is impossible
};
inline constexpr ChangeRule kOtherInput{ChangeKind::kInput}, kOtherTraining{ChangeKind::kTraining},
    kSameTraining{ChangeKind::kOutput};
constexpr ChangeRule impossible(std::string_view reason) {
  return {ChangeKind::kImpossible, reason};
}

/// How a config struct describes itself. Each struct lists its fields once, with their rules and
/// documentation; loading, dumping, `config explain` and "did you mean" all follow from that list:
///
///   struct OptimizerConfig {
///     Optimizer type = Optimizer::kAdagrad;
///     double lr = 0.02;
///     void visit(ConfigVisitor& v) {
///       v.choice("type", type, kOptimizers, "Row optimizer.");
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
  std::optional<ChangeRule> resume = {};  // nullopt: that of the section
};

/// One field of a config struct as its visitors see it, and where its value is.
struct FieldInfo {
  std::string_view name;
  std::string_view doc;
  const FieldRule& rule;
  ChangeRule resume;  // its own or that of its section
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

/// The meaning of a plain value where a section is expected.
struct PlainValue {
  std::string_view field = {};     // this field of the section; "": none
  std::string* instead = nullptr;  // this text, which is empty where there is a section; null: none
};

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
    field({name, doc, rule, rule.resume.value_or(resume_)}, &value);
  }

  /// A value of an enum: a string that is a word of its table, which the rule need not repeat.
  template <class Enum>
  void choice(std::string_view name,
              Enum& value,
              Choices<Enum> choices,
              std::string_view doc,
              FieldRule rule = {}) {
    for (const Choice<Enum>& each : choices) rule.one_of.emplace_back(each.word);
    std::string word(word_of(value, choices));
    field(name, word, doc, rule);
    value = value_of<Enum>(word, choices).value();  // a word that breaks the rule is not taken
  }

  /// A key of earlier versions: read where a file still has it, not written, explained or proposed.
  virtual void former(std::string_view /*name*/, std::string& /*value*/) {}

  /// A nested struct: a mapping in the file. `resume`: of its keys, unless they have their own;
  /// nullopt: that of the section around it. With `instead`, `name: text` sets that text; as long
  /// as there is one, the fields are not visited. The struct's module checks which texts exist.
  template <ConfigStruct T>
  void section(std::string_view name,
               T& value,
               std::string_view doc,
               std::optional<ChangeRule> resume = {},
               std::string* instead = nullptr) {
    if (!enter_section(name, {config_detail::plain_field<T>(), instead}, doc)) return;
    const ChangeRule outer = std::exchange(resume_, resume.value_or(resume_));
    value.visit(*this);
    resume_ = outer;
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
  /// `resume`: of keys outside of all sections that say so.
  explicit ConfigVisitor(ChangeRule resume = {}) : resume_(resume) {}

  ChangeRule resume() const { return resume_; }  // of the open section

  virtual void field(const FieldInfo& info, FieldRef value) = 0;
  // True: visit the fields, then leave_section. False: nothing to visit.
  virtual bool enter_section(std::string_view name,
                             const PlainValue& plain,
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
  ChangeRule resume_;

  template <ConfigStruct T>
  void visit_entry(const std::string& key, T& value) {
    if (!enter_entry(key)) return;
    value.visit(*this);
    leave_section();
  }
};

/// The origin of a value, for messages of later validation: "train.yaml:12", or "command line:
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
