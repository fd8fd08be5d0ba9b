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

/// Describes the error in the command line, with the nearest name for an unknown command.
std::string usage_message(const CLI::App& program,
                          const CLI::ParseError& error,
                          const std::vector<std::string>& words) {
  const CLI::App& command = deepest_command(program);
  std::vector<std::string> known;
  for (const CLI::App* sub : command.get_subcommands(nullptr)) known.push_back(sub->get_name());
  const std::string help = concat("; see `", full_name(command), " --help`");
  if (known.empty()) return error.what() + help;
  const std::size_t depth = full_name(command).find(' ') == std::string::npos ? 0 : 1;
  const std::string word = words.size() > depth ? words[depth] : "";
  if (word.empty() || word[0] == '-') return error.what() + help;
  const std::string near = nearest(word, known);
  return concat("unknown command '", word, "'",
                near.empty() ? "" : concat(", did you mean '", near, "'?"), help);
}

int run(CLI::App& program, const std::vector<std::string>& words, const Action& chosen) {
  try {
    std::vector<std::string> reversed(words.rbegin(), words.rend());  // the order that CLI11 takes
    program.parse(reversed);
    return chosen();
  } catch (const CLI::CallForHelp&) {
    print(program.help());
    return 0;
  } catch (const CLI::CallForVersion& version) {
    print(concat(version.what(), "\n"));
    return 0;
  } catch (const CLI::ParseError& error) {
    report_error(usage_message(program, error, words));
    return kUsageStatus;
  }
}

}  // namespace

int run_program(CLI::App& program,
                int argc,
                char** argv,
                const std::function<void(Action& chosen)>& prepare) {
  try {
    ignore_write_signals();
    std::set_terminate(end_unreported);
    program.set_version_flag("--version", program.get_name() + " " SATRAP_VERSION);
    Action chosen;
    prepare(chosen);
    return run(program, std::vector<std::string>(argv + 1, argv + argc), chosen);
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

}  // namespace satrap::cli
