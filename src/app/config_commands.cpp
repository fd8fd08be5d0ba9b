#include <memory>

#include <CLI/CLI.hpp>

#include "commands.h"
#include "job_arguments.h"
#include "job_preview.h"
#include "satrap/cli/output.h"
#include "satrap/core/config.h"
#include "satrap/job/config_paths.h"

namespace satrap::app {

void add_config_commands(CLI::App& program, cli::Action& chosen) {
  CLI::App* group = program.add_subcommand("config", "Check, print and explain configurations");
  group->require_subcommand(1);

  CLI::App* check = group->add_subcommand("check", "Say whether a job's configuration is valid");
  auto checked = std::make_shared<JobArguments>();
  auto with_data = std::make_shared<bool>(false);
  checked->add_to(*check);
  check->add_flag("--data", *with_data,
                  "Also open the job's files, show what each column is used for, and read the "
                  "first batch");
  check->callback([&chosen, checked, with_data] {
    chosen = [checked, with_data] {
      const job::JobConfig job = checked->load();
      const std::string data = *with_data ? describe_data(job) : "";
      cli::print(data + checked->config + ": ok\n");
      return 0;
    };
  });

  CLI::App* dump = group->add_subcommand(
      "dump", "Print the whole configuration of a job as YAML, defaults and overrides included");
  auto dumped = std::make_shared<JobArguments>();
  dumped->add_to(*dump);
  dump->callback([&chosen, dumped] {
    chosen = [dumped] {
      cli::print(dump_config(job::with_relative_paths(dumped->load())));
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
