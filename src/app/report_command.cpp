#include <memory>

#include <CLI/CLI.hpp>

#include "satrap/cli/output.h"
#include "src/app/commands.h"
#include "src/app/report_page.h"
#include "src/app/run_table.h"

namespace satrap::app {
namespace {

struct ReportArguments {
  std::vector<std::string> runs;
  std::string out;
};

int report(const ReportArguments& arguments) {
  if (arguments.runs.size() > 1 && arguments.out.empty()) {
    cli::print(run_table(arguments.runs));
    return 0;
  }
  const std::string path =
      arguments.out.empty() ? report_path(arguments.runs.front()) : arguments.out;
  write_report_page(arguments.runs, path);
  cli::print(path + "\n");
  return 0;
}

}  // namespace

void add_report_command(CLI::App& program, cli::Action& chosen) {
  CLI::App* command = program.add_subcommand("report",
                                             "Write a web page about a run: curves, result and "
                                             "configuration. Or compare runs in a table, with "
                                             "--out on a page");
  auto arguments = std::make_shared<ReportArguments>();
  command->add_option("RUN", arguments->runs, "Run directories; the runs may still be in progress")
      ->required()
      ->type_name("");
  command
      ->add_option("--out", arguments->out,
                   "The page (default: RUN/report.html for one run, a table on standard output for "
                   "several)")
      ->type_name("FILE");
  cli::end_help(*command, "satrap report runs/clicks runs/dcn");
  command->callback([&chosen, arguments] { chosen = [arguments] { return report(*arguments); }; });
}

}  // namespace satrap::app
