#include "src/app/completion.h"

#include <algorithm>
#include <string_view>

#include <CLI/CLI.hpp>

namespace satrap::app {
namespace {

/// The words of CLI::IsMember, which an option's type shows as `NAME:{a,b}`.
std::vector<std::string> choices_of(const std::string& type) {
  const std::size_t begin = type.find('{');
  const std::size_t end = type.find('}', begin);
  if (begin == std::string::npos || end == std::string::npos) return {};
  return CLI::detail::split(type.substr(begin + 1, end - begin - 1), ',');
}

CommandWords::Option option_words(const CLI::Option& option) {
  CommandWords::Option words;
  for (const std::string& name : option.get_lnames()) words.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) words.names.push_back("-" + name);
  words.about = option.get_description();
  if (option.get_type_size_max() == 0) return words;  // a flag
  const std::string type = option.get_type_name();
  const bool is_file = type.starts_with("FILE") || type.starts_with("DIR");
  words.value = is_file ? CommandWords::Value::kFile : CommandWords::Value::kAny;
  words.choices = choices_of(type);
  return words;
}

void add_positional(const CLI::Option& argument, CommandWords& words) {
  using Keys = CommandWords::Keys;
  const std::string name = argument.get_name();
  words.arguments = choices_of(argument.get_type_name());
  if (!words.arguments.empty()) return;
  if (name == "KEY") words.keys = Keys::kNames;
  // If CONFIG may be left out, it and what overrides it are one argument.
  if (name == "OVERRIDES" || (name == "CONFIG" && argument.get_items_expected_max() > 1)) {
    words.keys = Keys::kSettings;
  }
  if (name != "KEY" && name != "OVERRIDES" && name != "SETTINGS") words.takes_files = true;
}

void add_command(const CLI::App& command,
                 std::vector<std::string> path,
                 std::vector<CommandWords>& all) {
  path.push_back(command.get_name());
  const std::vector<const CLI::App*> below = command.get_subcommands(nullptr);
  CommandWords words{.path = path,
                     .about = command.get_description(),
                     .commands = {},
                     .arguments = {},
                     .options = {},
                     .takes_files = false,
                     .keys = CommandWords::Keys::kNone};
  for (const CLI::App* sub : below) words.commands.push_back(sub->get_name());
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) {
      add_positional(*option, words);
    } else {
      words.options.push_back(option_words(*option));
    }
  }
  all.push_back(std::move(words));
  for (const CLI::App* sub : below) add_command(*sub, path, all);
}

}  // namespace

std::vector<CommandWords> command_words(const CLI::App& program) {
  std::vector<CommandWords> all;
  add_command(program, {}, all);
  return all;
}

}  // namespace satrap::app
