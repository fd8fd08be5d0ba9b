#include <memory>

#include <CLI/CLI.hpp>

#include "satrap/cli/output.h"
#include "satrap/core/config.h"
#include "satrap/core/config_keys.h"
#include "satrap/core/error.h"
#include "satrap/job/config_paths.h"
#include "src/app/commands.h"
#include "src/app/job_arguments.h"
#include "src/app/job_preview.h"

namespace satrap::app {
namespace {

/// A word that is no key lists those that have it as a part, such as `dropout` or `lr`.
std::string meaning_of(const std::string& key) {
  try {
    return explain_config<job::JobConfig>(key);
  } catch (const Error&) {
    std::string found;
    for (const ConfigKey& known : config_keys<job::JobConfig>()) {
      const std::string path = "." + known.path + ".";
      if (path.find("." + key + ".") != std::string::npos) {
        found += "  satrap config explain " + known.path + "\n";
      }
    }
    if (key.find('.') != std::string::npos || found.empty()) throw;
    return "'" + key + "' is a part of these keys:\n" + found;
  }
}

}  // namespace

void add_config_commands(CLI::App& program, cli::Action& chosen) {
  CLI::App* group = program.add_subcommand("config", "Check, print and explain configurations");
  group->require_subcommand(1);
  cli::end_help(*group, "satrap config explain train.mode");

  CLI::App* check = group->add_subcommand("check", "Say whether a job's configuration is valid");
  auto checked = std::make_shared<JobArguments>();
  auto with_data = std::make_shared<bool>(false);
  checked->add_to(*check);
  check->add_flag("--data", *with_data,
                  "Also open the job's files, show what each column is used for, and read the "
                  "first batch");
  cli::end_help(*check, "satrap config check clicks.yaml --data");
  check->callback([&chosen, checked, with_data] {
    chosen = [checked, with_data] {
      const job::JobConfig job = checked->load();
      const std::string data = *with_data ? describe_data(job) : "";
      cli::print(
          data + checked->config +
          (*with_data ? ": ok\n" : ": ok (--data also checks the files and their columns)\n"));
      return 0;
    };
  });

  CLI::App* dump = group->add_subcommand(
      "dump", "Print the whole configuration of a job as YAML, defaults and overrides included");
  auto dumped = std::make_shared<JobArguments>();
  dumped->add_to(*dump);
  cli::end_help(*dump, "satrap config dump clicks.yaml train.mode=sync");
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
  cli::end_help(*explain, "satrap config explain data.train");
  explain->callback([&chosen, key] {
    chosen = [key] {
      cli::print(meaning_of(*key));
      return 0;
    };
  });
}

}  // namespace satrap::app
