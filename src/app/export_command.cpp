#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "checkpoint_paths.h"
#include "commands.h"
#include "remote_export.h"
#include "satrap/cli/output.h"
#include "satrap/core/text.h"
#include "satrap/data/remote_folder.h"
#include "satrap/trainer/export.h"

namespace satrap::app {
namespace {

struct ExportArguments {
  UsedJob used;
  std::string out;
  std::string format = trainer::kRowsFormatNames[0];
  bool overwrite = false;
};

trainer::RowsFormat format_named(const std::string& name) {
  return name == trainer::kRowsFormatNames[0] ? trainer::RowsFormat::kNpy
                                              : trainer::RowsFormat::kSafetensors;
}

int run_export(ExportArguments& arguments) {
  std::optional<RemoteExport> remote;
  if (data::is_url(arguments.out)) remote.emplace(arguments.out, arguments.overwrite);
  const job::JobConfig config = arguments.used.load();
  const trainer::Exported done = trainer::export_model(
      config, arguments.used.checkpoint, remote ? remote->local_path() : arguments.out,
      format_named(arguments.format), arguments.overwrite);
  if (remote) remote->upload();
  cli::print(fmt::format("{}: step {} of {}, {} rows, {}\n", arguments.out, done.step,
                         done.checkpoint, done.rows, format_bytes(done.bytes)));
  return 0;
}

}  // namespace

void add_export_command(CLI::App& program, cli::Action& chosen) {
  CLI::App* command = program.add_subcommand(
      "export",
      "Write the model of a checkpoint for serving: TorchScript, and NumPy arrays "
      "or SafeTensors");
  auto arguments = std::make_shared<ExportArguments>();
  arguments->used.add_to(*command);
  command
      ->add_option("--out", arguments->out,
                   "Folder for dense.pt, the rows of each table and export.json, which describes "
                   "them; appears once it is complete; of s3:// and hdfs:// export.json does")
      ->required()
      ->type_name("DIR");
  command
      ->add_option("--format", arguments->format,
                   "Of rows: npy, <table>.keys.npy and <table>.weights.npy, or safetensors, "
                   "<table>.safetensors with both (default npy)")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(trainer::kRowsFormatNames),
                                                     std::end(trainer::kRowsFormatNames))))
      ->type_name("FORMAT");
  command->add_flag("--overwrite", arguments->overwrite, "Replace an earlier export");
  command->callback(
      [&chosen, arguments] { chosen = [arguments] { return run_export(*arguments); }; });
}

}  // namespace satrap::app
