#include <algorithm>
#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "satrap/app/init_job.h"
#include "satrap/cli/output.h"
#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/text.h"
#include "satrap/data/columns.h"
#include "satrap/data/sample.h"
#include "satrap/data/schema.h"
#include "satrap/pipeline/load_job.h"
#include "src/app/commands.h"
#include "src/app/job_draft.h"

namespace satrap::app {
namespace {

constexpr std::int64_t kSampleRows = 100'000;

struct InitArguments {
  DraftRequest request;
  bool overwrite = false;
  std::string delimiter, header;
};

/// The delimiter that is meant, from the way people write it.
std::string delimiter_of(const std::string& text) {
  const std::string delimiter = text == "tab" || text == "\\t" ? "\t" : text;
  if (delimiter.size() <= 1) return delimiter;
  throw Error(ErrorCode::kInvalidConfig,
              concat("--delimiter: expected one character, or tab, got '", text, "'"));
}

/// A configuration and a checkpoint have names in UTF-8.
void require_utf8(const data::Sample& sample) {
  for (std::size_t c = 0; c < sample.names.size(); ++c) {
    if (is_utf8(sample.names[c])) continue;
    throw Error(
        ErrorCode::kInvalidData,
        concat("'", sample.files.front(), "': the name of column ", c + 1, ", '", sample.names[c],
               "', is not UTF-8; convert the file: iconv -f latin1 -t utf-8 ",
               sample.files.front()));
  }
}

/// As `train` will: throws what it would say, of a configuration that is not yet under its name.
void check(const std::string& yaml, const DraftRequest& request) {
  const std::string draft = request.config + ".draft";
  write_file_atomic(draft, yaml);
  try {
    const job::JobConfig config = pipeline::load_job(draft, {});
    data::describe_columns(data::Dataset(config.data), data::Role::kTrain);
  } catch (...) {
    std::filesystem::remove(draft);
    throw;
  }
  std::filesystem::remove(draft);
}

int init(InitArguments& arguments) {
  DraftRequest& request = arguments.request;
  request.text.delimiter = delimiter_of(arguments.delimiter);
  if (!arguments.header.empty()) request.text.header = arguments.header == "yes";
  if (request.config.empty()) request.config = default_config(request.data);
  cli::print(init_job(request, arguments.overwrite));
  const bool is_stdin = request.data.front() == "-";
  cli::print(
      fmt::format("next        {}satrap train {}\n", is_stdin ? "... | " : "", request.config));
  return 0;
}

}  // namespace

std::string default_config(const std::vector<std::string>& data) {
  std::filesystem::path name = std::filesystem::path(data.front()).filename();
  while (name.has_extension() && name.has_stem()) name = name.stem();
  std::string stem = name.string();  // of a glob: what stands before it
  stem.resize(std::min(stem.size(), stem.find_first_of("*?[")));
  while (stem.ends_with('_') || stem.ends_with('-') || stem.ends_with('.')) stem.pop_back();
  return (stem.empty() || stem.starts_with('-') ? "job" : stem) + ".yaml";
}

std::string init_job(const DraftRequest& request, bool overwrite) {
  if (!overwrite && std::filesystem::exists(request.config)) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("'", request.config,
                       "' exists; name another file with --out, replace it with "
                       "--overwrite, or train with it: satrap train ",
                       request.config));
  }
  const data::Sample sample = data::read_sample(request.data, kSampleRows, request.text);
  require_utf8(sample);
  const JobDraft draft = draft_job(sample, request);
  if (request.data.front() != "-") check(draft.yaml, request);
  write_file_atomic(request.config, draft.yaml);
  std::string text = fmt::format("job         {}\n", request.config);
  for (const std::string& note : draft.notes) text += note + "\n";
  return text;
}

void add_init_command(CLI::App& program, cli::Action& chosen) {
  CLI::App* command =
      program.add_subcommand("init", "Write the configuration of a job from a look at its data");
  auto arguments = std::make_shared<InitArguments>();
  command
      ->add_option(
          "DATA", arguments->request.data,
          "Files or globs: delimited text or JSON lines (plain, gzip or zstd), or Parquet; "
          "-: standard input")
      ->required()
      ->type_name("");
  command
      ->add_option("--label", arguments->request.label,
                   "Column to predict (default: the one that looks like a label)")
      ->type_name("COLUMN");
  command
      ->add_option("--delimiter", arguments->delimiter,
                   "Character between columns, or tab (default: found in the lines)")
      ->type_name("CHARACTER");
  command
      ->add_option("--header", arguments->header,
                   "Whether the first line names the columns (default: found in the lines)")
      ->check(CLI::IsMember({"yes", "no"}))
      ->type_name("yes|no");
  command
      ->add_option("--out", arguments->request.config,
                   "The configuration (default: the name of the data with .yaml)")
      ->type_name("FILE");
  command->add_flag("--overwrite", arguments->overwrite, "Replace the configuration");
  cli::end_help(
      *command, "satrap init clicks.csv --label clicked",
      "Reads up to 100,000 rows, or 128 MiB. Comments in the configuration explain each choice.");
  command->callback([&chosen, arguments] { chosen = [arguments] { return init(*arguments); }; });
}

}  // namespace satrap::app
