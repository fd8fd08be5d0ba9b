#include <memory>

#include <CLI/CLI.hpp>

#include "commands.h"
#include "report_page.h"
#include "satrap/cli/output.h"
#include "satrap/core/error.h"
#include "satrap/core/file.h"

namespace satrap::app {
namespace {

struct ReportArguments {
  std::vector<std::string> runs;
  std::string out;
};

int report(const ReportArguments& arguments) {
  if (arguments.runs.size() > 1 && arguments.out.empty()) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("--out: needed to compare ", arguments.runs.size(),
                       " runs; the report of one run goes to its directory by default"));
  }
  const std::string path =
      arguments.out.empty() ? report_path(arguments.runs.front()) : arguments.out;
  write_file_atomic(path, report_page(arguments.runs));
  cli::print(path + "\n");
  return 0;
}

}  // namespace

void add_report_command(CLI::App& program, cli::Action& chosen) {
  CLI::App* command = program.add_subcommand(
      "report", "Write a web page about a run: curves, result, configuration; or compare runs");
  auto arguments = std::make_shared<ReportArguments>();
  command->add_option("RUN", arguments->runs, "Run directories; the runs may still be in progress")
      ->required()
      ->type_name("");
  command
      ->add_option("--out", arguments->out,
                   "The page; for a single run the default is RUN/report.html")
      ->type_name("FILE");
  command->callback([&chosen, arguments] { chosen = [arguments] { return report(*arguments); }; });
}

}  // namespace satrap::app
