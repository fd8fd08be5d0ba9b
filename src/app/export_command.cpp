#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "satrap/cli/output.h"
#include "satrap/core/choice.h"
#include "satrap/core/text.h"
#include "satrap/data/remote_folder.h"
#include "satrap/trainer/export.h"
#include "src/app/checkpoint_paths.h"
#include "src/app/commands.h"
#include "src/app/remote_export.h"

namespace satrap::app {
namespace {

struct ExportArguments {
  UsedJob used;
  std::string out;
  std::string network;  // "": the default of the model
  std::string format = trainer::kRowsFormatNames[0];
  bool overwrite = false;
};

trainer::ExportOptions options_of(const ExportArguments& arguments) {
  trainer::ExportOptions options{
      .network = value_of<trainer::NetworkFormat>(arguments.network, trainer::kNetworkFormats),
      .overwrite = arguments.overwrite};
  if (arguments.format != trainer::kRowsFormatNames[0]) {
    options.rows = trainer::RowsFormat::kSafetensors;
  }
  return options;
}

std::vector<std::string> words_of(Choices<trainer::NetworkFormat> formats) {
  std::vector<std::string> words;
  for (const auto& [word, value] : formats) words.emplace_back(word);
  return words;
}

int run_export(ExportArguments& arguments, const HostProgram& host) {
  std::optional<RemoteExport> remote;
  if (data::is_url(arguments.out)) remote.emplace(arguments.out, arguments.overwrite);
  const job::JobConfig config = arguments.used.load(host);
  trainer::ExportOptions options = options_of(arguments);
  options.make_network = arguments.used.network(config, host, "export --out " + arguments.out);
  const trainer::Exported done = trainer::export_model(
      config, arguments.used.checkpoint, remote ? remote->local_path() : arguments.out, options);
  if (remote) remote->upload();
  if (host.job) return 0;
  cli::print(fmt::format("{}: step {} of {}, {} rows, {}\n", arguments.out, done.step,
                         done.checkpoint, done.rows, format_bytes(done.bytes)));
  return 0;
}

}  // namespace

void add_export_command(CLI::App& program, const HostProgram& host, cli::Action& chosen) {
  CLI::App* command = program.add_subcommand(
      "export",
      "Write the model of a checkpoint for serving: ONNX, TorchScript or pt2, and NumPy arrays or "
      "SafeTensors");
  auto arguments = std::make_shared<ExportArguments>();
  arguments->used.add_to(*command);
  command
      ->add_option(
          "--out", arguments->out,
          "Folder for the network, the rows of each table, and export.json, which "
          "describes them. It appears once it is complete; in a store (s3://, hdfs://) export.json "
          "is written last")
      ->required()
      ->type_name("DIR");
  command
      ->add_option(
          "--network", arguments->network,
          "Format of the network. onnx: dense.onnx. torchscript: dense.pt, which needs "
          "PyTorch to be written and read. pt2: dense.pt2 of torch.export, for a network in "
          "Python (default onnx; pt2 for a model of type python; torchscript for one of "
          "type torchscript, which has no other)")
      ->check(CLI::IsMember(words_of(trainer::kNetworkFormats)))
      ->type_name("FORMAT");
  command
      ->add_option(
          "--format", arguments->format,
          "Format of the rows. npy: <table>.keys.npy and <table>.weights.npy. safetensors: "
          "<table>.safetensors with both (default npy)")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(trainer::kRowsFormatNames),
                                                     std::end(trainer::kRowsFormatNames))))
      ->type_name("FORMAT");
  command->add_flag("--overwrite", arguments->overwrite, "Replace an earlier export");
  cli::end_help(*command, "satrap export --checkpoint runs/clicks --out model");
  command->callback([&chosen, &host, arguments] {
    chosen = [&host, arguments] { return run_export(*arguments, host); };
  });
}

}  // namespace satrap::app
