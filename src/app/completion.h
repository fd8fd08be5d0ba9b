#pragma once

#include <span>
#include <string>
#include <vector>

#include "satrap/core/config_keys.h"

namespace CLI {
class App;
}

namespace satrap::app {

/// The words that may follow one command on a command line, for completion by a shell.
struct CommandWords {
  enum class Value { kNone, kAny, kFile };  // what an option takes
  enum class Keys { kNone, kNames, kSettings };

  struct Option {
    std::vector<std::string> names;  // with their dashes
    std::string about;
    Value value = Value::kNone;
    std::vector<std::string> choices;  // words that the value may be; empty: any
  };

  std::vector<std::string> path;  // {"satrap", "config", "check"}
  std::string about;
  std::vector<std::string> commands;   // below this one
  std::vector<std::string> arguments;  // the words that a positional argument may be
  std::vector<Option> options;
  bool takes_files = false;
  Keys keys = Keys::kNone;  // of the configuration: as `train.mode`, or as `train.mode=`
};

/// All commands of a program, itself first. Files are meant where a value is named FILE or DIR, and
/// by positional arguments other than KEY, OVERRIDES (`key.path=value`) and SETTINGS.
std::vector<CommandWords> command_words(const CLI::App& program);

/// Scripts for the shells, which call nothing: all words are in them.
std::string bash_completion(std::span<const CommandWords> commands,
                            std::span<const ConfigKey> keys);
std::string zsh_completion(std::span<const CommandWords> commands, std::span<const ConfigKey> keys);
std::string fish_completion(std::span<const CommandWords> commands,
                            std::span<const ConfigKey> keys);

}  // namespace satrap::app
