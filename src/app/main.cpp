#include "satrap/app/main.h"

#include <CLI/CLI.hpp>

#include "satrap/cli/program.h"
#include "satrap/cli/ps_commands.h"
#include "src/app/commands.h"

namespace satrap::app {
namespace {

constexpr const char* kAbout = "satrap trains recommender models with large embedding tables.";

void add_commands(CLI::App& program, const HostProgram& host, cli::Action& chosen) {
  program.require_subcommand(1);
  program.footer(
      "Examples:\n"
      "  satrap init clicks.csv        # looks at the data and writes clicks.yaml\n"
      "  satrap train clicks.yaml\n"
      "  satrap predict --checkpoint runs/clicks --data new.csv --out scores.tsv");
  add_init_command(program, chosen);
  add_train_command(program, host, chosen);
  add_eval_command(program, host, chosen);
  add_predict_command(program, host, chosen);
  add_export_command(program, host, chosen);
  add_data_commands(program, chosen);
  add_config_commands(program, chosen);
  add_checkpoint_commands(program, chosen);
  add_report_command(program, chosen);
  cli::add_ps_command(program, chosen);
  cli::add_loader_command(program, chosen);
  cli::add_store_command(program, chosen);
  add_doctor_command(program, chosen);
  add_completion_command(program, chosen);
}

}  // namespace

int run_command(const std::vector<std::string>& words, const HostProgram& host) {
  CLI::App program(kAbout, "satrap");
  return cli::run_words(program, words,
                        [&](cli::Action& chosen) { add_commands(program, host, chosen); });
}

int main(int argc, char** argv) {
  const HostProgram none;
  CLI::App program(kAbout, "satrap");
  return cli::run_program(program, argc, argv,
                          [&](cli::Action& chosen) { add_commands(program, none, chosen); });
}

}  // namespace satrap::app
