#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "satrap/cli/output.h"
#include "satrap/job/job_config.h"
#include "src/app/commands.h"
#include "src/app/completion.h"

namespace satrap::app {
namespace {

int print_completion(const CLI::App& program, const std::string& shell) {
  const std::vector<CommandWords> commands = command_words(program);
  const std::vector<ConfigKey> keys = config_keys<job::JobConfig>();
  cli::print(shell == "bash"  ? bash_completion(commands, keys)
             : shell == "zsh" ? zsh_completion(commands, keys)
                              : fish_completion(commands, keys));
  return 0;
}

}  // namespace

void add_completion_command(CLI::App& program, cli::Action& chosen) {
  CLI::App* command = program.add_subcommand(
      "completion", "Print a script that completes commands, options and keys in a shell");
  auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}))
      ->type_name("");
  cli::end_help(
      *command, "source <(satrap completion bash)",
      "For bash put the line below into ~/.bashrc. For zsh put it after compinit, with zsh for\n"
      "bash. For fish: satrap completion fish | source.");
  command->callback([&program, &chosen, shell] {
    chosen = [&program, shell] { return print_completion(program, *shell); };
  });
}

}  // namespace satrap::app
