#include <utility>

#include <fmt/format.h>

#include "satrap/core/error.h"
#include "src/app/completion.h"
#include "src/app/completion_scripts/scripts.h"

namespace satrap::app {
namespace {

using Keys = CommandWords::Keys;
using Value = CommandWords::Value;

std::string joined(std::span<const std::string> words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ' ';
    text += word;
  }
  return text;
}

/// The keys, each with `end` behind it.
std::string key_words(std::span<const ConfigKey> keys, const std::string& end) {
  std::vector<std::string> words;
  for (const ConfigKey& key : keys) words.push_back(key.path + end);
  return joined(words);
}

/// Bash and zsh know a command or key by a function that prints words, by case of its arguments.
class CaseFunction {
 public:
  CaseFunction(std::string name, std::string subject)
      : name_(std::move(name)), subject_(std::move(subject)) {}

  void add(const std::string& pattern, const std::string& words) {
    cases_ += fmt::format("    '{}') echo '{}' ;;\n", pattern, words);
  }
  void add_settings(const std::string& pattern) {
    cases_ += fmt::format("    '{}') echo \"$_satrap_settings\" ;;\n", pattern);
  }
  std::string text() const {
    return fmt::format("{}() {{\n  case {} in\n{}  esac\n}}\n", name_, subject_, cases_);
  }

 private:
  std::string name_, subject_, cases_;
};

/// @file and @any stand for values that have no words.
std::string value_words(const CommandWords::Option& option) {
  if (!option.choices.empty()) return joined(option.choices);
  return option.value == Value::kFile ? "@file" : "@any";
}

/// The functions that bash and zsh share.
std::string word_functions(std::span<const CommandWords> commands,
                           std::span<const ConfigKey> keys) {
  CaseFunction words("_satrap_words", "$1"), values("_satrap_value", "\"$1 $2\"");
  CaseFunction files("_satrap_takes_files", "$1"), settings("_satrap_keys", "$1");
  CaseFunction choices("_satrap_key", "$1");
  for (const CommandWords& command : commands) {
    const std::string path = joined(command.path);
    std::vector<std::string> next = command.commands;
    next.insert(next.end(), command.arguments.begin(), command.arguments.end());
    for (const CommandWords::Option& option : command.options) {
      next.insert(next.end(), option.names.begin(), option.names.end());
      if (option.value == Value::kNone) continue;
      for (const std::string& name : option.names)
        values.add(path + " " + name, value_words(option));
    }
    words.add(path, joined(next));
    if (command.takes_files) files.add(path, "yes");
    if (command.keys == Keys::kNames) settings.add(path, key_words(keys, ""));
    if (command.keys == Keys::kSettings) settings.add_settings(path);
  }
  for (const ConfigKey& key : keys) {
    choices.add(key.path, key.choices.empty() ? "@file" : joined(key.choices));
  }
  return fmt::format("_satrap_settings='{}'\n", key_words(keys, "=")) + words.text() +
         values.text() + files.text() + settings.text() + choices.text();
}

/// A string of fish.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result + "'";
}

/// A line of fish: where `condition` holds, `what` may follow.
std::string rule(const std::string& condition, const std::string& what) {
  return fmt::format("complete -c satrap -n {} {}\n", quoted(condition), what);
}

std::string option_of_fish(const CommandWords::Option& option) {
  std::string words;
  for (const std::string& name : option.names) {
    words += name.starts_with("--") ? "-l " + name.substr(2) : "-s " + name.substr(1);
    words += ' ';
  }
  if (!option.choices.empty()) {
    words += "-xa " + quoted(joined(option.choices)) + " ";
  } else if (option.value != Value::kNone) {
    words += option.value == Value::kFile ? "-rF " : "-x ";
  }
  return words + "-d " + quoted(option.about);
}

std::string settings_of_fish(std::span<const ConfigKey> keys) {
  std::vector<std::string> words;
  for (const ConfigKey& key : keys) {
    if (key.choices.empty()) words.push_back(key.path + "=");
    for (const std::string& choice : key.choices) words.push_back(key.path + "=" + choice);
  }
  return joined(words);
}

}  // namespace

std::string bash_completion(std::span<const CommandWords> commands,
                            std::span<const ConfigKey> keys) {
  return concat("# Completion of satrap for bash: source <(satrap completion bash)\n",
                word_functions(commands, keys), kBashScript);
}

std::string zsh_completion(std::span<const CommandWords> commands,
                           std::span<const ConfigKey> keys) {
  return concat("#compdef satrap\n",
                "# Completion of satrap for zsh, after compinit: source <(satrap completion zsh)\n",
                word_functions(commands, keys), kZshScript);
}

std::string fish_completion(std::span<const CommandWords> commands,
                            std::span<const ConfigKey> keys) {
  std::string script =
      concat("# Completion of satrap for fish: satrap completion fish | source\n", kFishScript);
  script += "set -g __satrap_settings " + settings_of_fish(keys) + "\n";
  script += "set -g __satrap_keys " + key_words(keys, "") + "\n";
  for (const CommandWords& command : commands) {
    const std::span<const std::string> below = std::span(command.path).subspan(1);
    if (!below.empty()) {
      script += rule("__satrap_ends_at " + joined(below.first(below.size() - 1)),
                     fmt::format("-a {} -d {}", below.back(), quoted(command.about)));
    }
    const std::string here =
        (command.commands.empty() ? "__satrap_at " : "__satrap_ends_at ") + joined(below);
    for (const CommandWords::Option& option : command.options) {
      script += rule(here, option_of_fish(option));
    }
    if (command.takes_files) script += rule(here, "-F");
    if (!command.arguments.empty()) script += rule(here, "-a " + quoted(joined(command.arguments)));
    if (command.keys == Keys::kNames) script += rule(here, "-a '$__satrap_keys'");
    if (command.keys == Keys::kSettings) script += rule(here, "-a '$__satrap_settings'");
  }
  return script;
}

}  // namespace satrap::app
