#include <memory>

#include <CLI/CLI.hpp>

#include "commands.h"
#include "job_arguments.h"
#include "satrap/cli/output.h"
#include "satrap/core/config.h"

namespace satrap::app {

void add_config_commands(CLI::App& program, cli::Action& chosen) {
  CLI::App* group = program.add_subcommand("config", "Check, print and explain configurations");
  group->require_subcommand(1);

  CLI::App* check = group->add_subcommand("check", "Say whether a job's configuration is valid");
  auto checked = std::make_shared<JobArguments>();
  checked->add_to(*check);
  check->callback([&chosen, checked] {
    chosen = [checked] {
      checked->load();
      cli::print(checked->config + ": ok\n");
      return 0;
    };
  });

  CLI::App* dump = group->add_subcommand(
      "dump", "Print the whole configuration of a job as YAML, defaults and overrides included");
  auto dumped = std::make_shared<JobArguments>();
  dumped->add_to(*dump);
  dump->callback([&chosen, dumped] {
    chosen = [dumped] {
      cli::print(dump_config(dumped->load()));
      return 0;
    };
  });

  CLI::App* explain = group->add_subcommand(
      "explain", "Print the meaning, type, default and rule of a key or section");
  auto key = std::make_shared<std::string>();
  explain->add_option("KEY", *key, "Dotted path such as train.mode; default: every key")
      ->type_name("");
  explain->callback([&chosen, key] {
    chosen = [key] {
      cli::print(explain_config<job::JobConfig>(*key));
      return 0;
    };
  });
}

}  // namespace satrap::app
