#include "satrap/cli/program.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>

#include "satrap/cli/output.h"
#include "satrap/cli/stop_signals.h"
#include "satrap/core/config.h"
#include "satrap/core/error.h"
#include "satrap/core/text.h"
#include "src/cli/last_words.h"
#include "src/cli/stack.h"

namespace satrap::cli {
namespace {

constexpr int kUsageStatus = 2;

/// One line per problem; a configuration may have several.
void report_error(std::string_view message) {
  while (!message.empty()) {
    const std::string_view line = message.substr(0, message.find('\n'));
    message.remove_prefix(std::min(line.size() + 1, message.size()));
    if (!line.empty()) std::fprintf(stderr, "error: %s\n", printable(line).c_str());
  }
}

/// The deepest command that parsing reached, whose help is useful.
const CLI::App& deepest_command(const CLI::App& program) {
  const CLI::App* command = &program;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  return *command;
}

std::string full_name(const CLI::App& command) {
  const std::string& name = command.get_name();
  return command.get_parent() == nullptr ? name : full_name(*command.get_parent()) + " " + name;
}

std::string see_help(const CLI::App& command) {
  return concat("; see `", full_name(command), " --help`");
}

/// " did you mean" of a name that is not known; "": nothing is like it.
std::string suggestion(const std::string& word, const std::vector<std::string>& known) {
  const std::string near = nearest(word, known);
  return near.empty() ? "" : concat(", did you mean '", near, "'?");
}

/// The word where a command should stand, if there are commands and it is none of them; else "".
std::string unknown_command(const CLI::App& command, const std::vector<std::string>& words) {
  std::vector<std::string> known;
  for (const CLI::App* sub : command.get_subcommands(nullptr)) known.push_back(sub->get_name());
  const std::size_t depth = full_name(command).find(' ') == std::string::npos ? 0 : 1;
  if (known.empty() || words.size() <= depth || words[depth].starts_with('-')) return "";
  return concat("unknown command '", words[depth], "'", suggestion(words[depth], known));
}

/// The first option that neither the command nor those above it have; "": all are known.
std::string unknown_option(const CLI::App& command, const std::vector<std::string>& words) {
  std::vector<std::string> known;
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
  }
  for (const std::string& word : words) {
    if (word == "--") break;
    const std::string name = word.substr(0, word.find('='));
    if (!name.starts_with("--") || std::ranges::count(known, name) > 0) continue;
    return concat("unknown option '", name, "'", suggestion(name, known));
  }
  return "";
}

/// Says which command or option is unknown, and where to look it up; "": none is.
std::string unknown_name(const CLI::App& program, const std::vector<std::string>& words) {
  const CLI::App& command = deepest_command(program);
  std::string message = unknown_command(command, words);
  if (message.empty()) message = unknown_option(command, words);
  return message.empty() ? "" : concat(message, see_help(command));
}

/// `help COMMAND` means `COMMAND --help`, in a program that has commands.
std::vector<std::string> with_help_option(const CLI::App& program, std::vector<std::string> words) {
  if (words.empty() || words.front() != "help" || program.get_subcommands(nullptr).empty()) {
    return words;
  }
  words.erase(words.begin());
  words.emplace_back("--help");
  return words;
}

int run(CLI::App& program, const std::vector<std::string>& words, const Action& chosen) {
  try {
    std::vector<std::string> reversed(words.rbegin(), words.rend());  // the order that CLI11 takes
    program.parse(reversed);
    return chosen();
  } catch (const CLI::CallForHelp&) {
    const std::string unknown = unknown_name(program, words);
    if (!unknown.empty()) {
      report_error(unknown);
      return kUsageStatus;
    }
    print(program.help());
    return 0;
  } catch (const CLI::CallForVersion& version) {
    print(concat(version.what(), "\n"));
    return 0;
  } catch (const CLI::ParseError& error) {
    const std::string unknown = unknown_name(program, words);
    report_error(unknown.empty() ? error.what() + see_help(deepest_command(program)) : unknown);
    return kUsageStatus;
  }
}

}  // namespace

int run_words(CLI::App& program,
              const std::vector<std::string>& words,
              const std::function<void(Action& chosen)>& prepare) {
  program.set_version_flag("--version", program.get_name() + " " SATRAP_VERSION);
  Action chosen;
  prepare(chosen);
  return run(program, with_help_option(program, words), chosen);
}

int run_program(CLI::App& program,
                int argc,
                char** argv,
                const std::function<void(Action& chosen)>& prepare) {
  try {
    ignore_write_signals();
    require_stack();
    std::set_terminate(end_unreported);
    return run_words(program, {argv + 1, argv + argc}, prepare);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kClosedPipe) report_error(error.what());
    return exit_status(error.code());
  } catch (const std::bad_alloc&) {
    report_error(concat("out of memory while running `", full_name(deepest_command(program)), "`"));
  } catch (const std::system_error& error) {
    const bool is_thread = error.code() == std::errc::resource_unavailable_try_again;
    const bool is_memory = error.code() == std::errc::not_enough_memory;
    report_error(concat(is_thread   ? "out of memory for a thread, or too many threads: "
                        : is_memory ? "out of memory: "
                                    : "",
                        error.what()));
  } catch (const std::exception& error) {
    report_error(error.what());
  }
  return 1;
}

void end_help(CLI::App& command, const std::string& example, const std::string& text) {
  command.footer(concat(text, text.empty() ? "" : "\n\n", "Example:\n  ", example));
}

}  // namespace satrap::cli
