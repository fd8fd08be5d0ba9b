#include <filesystem>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "satrap/cli/stop_signals.h"
#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/data/open_rows.h"
#include "satrap/data/output_file.h"
#include "satrap/data/schema.h"
#include "satrap/job/label_loss.h"
#include "satrap/trainer/predict.h"
#include "src/app/checkpoint_paths.h"
#include "src/app/commands.h"

namespace satrap::app {
namespace {

namespace fs = std::filesystem;

struct PredictArguments {
  UsedJob used;
  std::vector<std::string> data, keep;
  std::string out = "-";
};

/// Refuses an --out that the command reads: rows, the configuration, the checkpoint.
void check_out(const PredictArguments& arguments,
               const job::JobConfig& job,
               const std::string& checkpoint) {
  const std::string out = arguments.out == "-" ? "/dev/stdout" : arguments.out;
  data::FilesConfig rows;
  for (const auto* paths : {&arguments.data, &job.data.eval.path, &job.data.train.path}) {
    rows.path.insert(rows.path.end(), paths->begin(), paths->end());
  }
  std::vector<std::string> read = data::usable_files(rows);
  read.push_back(arguments.used.job.config);
  for (const std::string& file : read) {
    if (!data::is_same_file(out, file)) continue;
    throw Error(ErrorCode::kInvalidConfig,
                concat("--out: ", arguments.out == "-" ? "standard output" : out, " is ", file,
                       ", which the job reads; name another file"));
  }
  std::error_code unknown;  // a folder that is not there, or not to be seen: writing reports it
  const std::string folder = fs::canonical(checkpoint, unknown).string() + "/";
  if (fs::weakly_canonical(out, unknown).string().starts_with(folder) && arguments.out != "-") {
    throw Error(ErrorCode::kInvalidConfig, concat("--out: ", out, " lies in the checkpoint ",
                                                  checkpoint, "; name a file elsewhere"));
  }
}

/// The names of the kept columns, then `probability` or `value`, or the names of several labels or
/// of classes; tabs between.
std::string heading(const data::Schema& schema,
                    const job::ModelConfig& model,
                    const std::vector<std::string>& keep) {
  std::string line;
  const auto add = [&](const std::string& name) { line += (line.empty() ? "" : "\t") + name; };
  for (const std::string& column : keep) add(column);
  const data::LabelConfig& first = schema.labels.front().source;
  if (first.has_classes()) {
    for (const std::string& name : first.class_names()) add(name);
  } else if (schema.labels.size() == 1) {
    add(job::loss_of(model, first) == job::Loss::kMse ? "value" : "probability");
  } else {
    for (const data::NamedLabelConfig& label : schema.labels) add(label.name);
  }
  return line + "\n";
}

/// A field as a line of columns can hold it.
void append_field(std::string_view field, std::string& lines) {
  for (const char c : field) c == '\t' ? lines.append("\\t") : lines.append(1, c);
}

void append_lines(const trainer::PredictedLines& predicted,
                  std::size_t num_outputs,
                  std::string& lines) {
  const std::span<const float> predictions = predicted.predictions;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i / num_outputs);
    for (std::size_t k = 0; k < predicted.kept.size() && i % num_outputs == 0; ++k) {
      append_field(predicted.kept[k].at(row), lines);
      lines += '\t';
    }
    const bool ends_line = (i + 1) % num_outputs == 0;
    fmt::format_to(std::back_inserter(lines), "{:.9g}{}", predictions[i], ends_line ? '\n' : '\t');
  }
}

void check_keep(const PredictArguments& arguments, const job::JobConfig& config) {
  if (arguments.keep.empty() || !config.data.is_synthetic()) return;
  throw Error(ErrorCode::kInvalidConfig,
              "--keep: data.format synthetic has no text whose columns could be kept");
}

int predict(PredictArguments& arguments, const HostProgram& host) {
  job::JobConfig config = arguments.used.load(host);
  const checkpoint::UsedCheckpoint& checkpoint = arguments.used.checkpoint;
  check_out(arguments, config, checkpoint.path);
  check_keep(arguments, config);
  use_data(arguments.data, arguments.used.job, config);
  data::OutputFile out(arguments.out);  // may wait for the reader of a pipe: a signal ends that
  const cli::StopSignals signals(role_of(host));
  const pipeline::MakeNetwork network = arguments.used.network(config, host, "predict");
  const data::Schema schema = data::resolve_schema(config.data);
  const auto num_outputs = static_cast<std::size_t>(schema.num_outputs());
  std::string lines = heading(schema, config.model, arguments.keep);  // written after all checks
  const trainer::PredictedRows read = trainer::predict(
      config, checkpoint, &signals.stop(), arguments.keep,
      [&](const trainer::PredictedLines& predicted) {
        append_lines(predicted, num_outputs, lines);
        out.write(lines);
        lines.clear();
      },
      network);
  out.write(lines);  // the heading, if there was no row
  if (signals.stop()) return 128 + signals.signal_number();
  out.finish();
  log_info("{}: predictions of {} rows", checkpoint.name(), read.rows);
  if (read.bad_rows > 0) {
    log_warning("{} of {} rows could not be read; their lines are nan", read.bad_rows, read.rows);
  }
  return 0;
}

}  // namespace

void add_predict_command(CLI::App& program, const HostProgram& host, cli::Action& chosen) {
  CLI::App* command = program.add_subcommand(
      "predict", "Predict with a checkpoint: a probability or value per row");
  auto arguments = std::make_shared<PredictArguments>();
  arguments->used.add_to(*command);
  add_data_option(*command, arguments->data, "File or glob with the rows");
  command
      ->add_option("--keep", arguments->keep,
                   "Columns of the data to write before the prediction, such as id,ts; may be "
                   "repeated")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("COLUMNS");
  command
      ->add_option(
          "--out", arguments->out,
          "File for the predictions, which appears once it is complete; -: standard output")
      ->type_name("FILE");
  cli::end_help(
      *command,
      "satrap predict --checkpoint runs/clicks --data new.csv --keep user --out scores.tsv",
      "Writes the header `probability`, then one line for each line of the data except header\n"
      "lines, in the same order. Rows that do not meet data.eval.where have no line; with --data\n"
      "there is no `where`. For several labels the header lists their names, and each line has\n"
      "one prediction per label, separated by tabs. A label that is a number, or has loss mse, "
      "has\n"
      "a value instead, and `value` is its header. A label of classes has a probability for each,\n"
      "under class_0, class_1 and so on, or under the texts of `values`. --keep puts columns of\n"
      "the data, as they are written, before them (a tab in a field as \\t). A blank line gets\n"
      "`nan`, and so does a row that cannot be read; with data.on_bad_row=stop such a row ends "
      "the\n"
      "command.\n"
      "\n"
      "Labels are ignored. With a header, label columns may be missing. Without a header but with\n"
      "named columns, a line has either all columns or all but those that only labels use; the\n"
      "first line that is not blank decides. With numbered columns, the label columns count and\n"
      "must be present.");
  command->callback([&chosen, &host, arguments] {
    chosen = [&host, arguments] { return predict(*arguments, host); };
  });
}

}  // namespace satrap::app
