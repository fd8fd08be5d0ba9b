#include <algorithm>
#include <atomic>
#include <csignal>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "satrap/app/init_job.h"
#include "satrap/app/train_job.h"
#include "satrap/cli/output.h"
#include "satrap/cli/stop_signals.h"
#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/log.h"
#include "satrap/core/text.h"
#include "satrap/data/remote_folder.h"
#include "satrap/trainer/importance.h"
#include "satrap/trainer/trainer.h"
#include "src/app/checkpoint_paths.h"
#include "src/app/commands.h"
#include "src/app/importance_text.h"
#include "src/app/job_arguments.h"
#include "src/app/job_preview.h"

namespace satrap::app {
namespace {

struct TrainArguments {
  JobArguments job;
  std::string label;  // not empty: the job's configuration is made first, for data in its place
  trainer::TrainOptions options;
  bool is_dry = false;
};

/// The command that continues this run, whatever was overridden when it was started.
std::string how_to_continue(const job::JobConfig& config, const job::ClusterConfig& cluster) {
  if (cluster.num_ranks > 1 || cluster.num_shards > 0) {
    return "the command that started the job, with `-- --resume` at its end,";
  }
  const char* const program =
      config.model.type == job::ModelType::kPython ? "python -m satrap" : "satrap";
  if (data::is_url(config.run_dir)) {
    return fmt::format("`{} train CONFIG run_dir={} --resume`", program, config.run_dir);
  }
  return fmt::format("`{} train {}/config.yaml --resume`", program, shown_path(config.run_dir));
}

/// CONFIG names data: writes a configuration for them, and takes that instead.
void init_first(TrainArguments& arguments) {
  JobArguments& job = arguments.job;
  DraftRequest request{.data = {job.config}, .label = arguments.label, .config = ""};
  std::erase_if(job.overrides, [&](const std::string& word) {
    const bool is_data = !word.starts_with('~') && word.find('=') == std::string::npos;
    if (is_data) request.data.push_back(word);
    return is_data;
  });
  if (request.data.front() == "-") {
    throw Error(ErrorCode::kInvalidConfig,
                "--label: standard input can be read only once, and a look at it takes the first "
                "rows; write the rows to a file, or a sample of them for `satrap init`");
  }
  request.config = default_config(request.data);
  cli::print(init_job(request, arguments.options.overwrite));
  job.config = request.config;
}

int train(TrainArguments& arguments, const HostProgram& host) {
  if (!arguments.label.empty()) init_first(arguments);
  if (arguments.options.accept_changed_data && !arguments.options.resume &&
      arguments.options.resume_from.empty()) {
    throw Error(
        ErrorCode::kInvalidConfig,
        "--accept-changed-data is for a run that continues: with --resume or --resume-from");
  }
  job::JobConfig config = arguments.job.load();
  choose_run_dir(config, arguments.options);
  std::string command = "train " + arguments.job.config;
  for (const std::string& word : arguments.job.overrides) command += " " + word;
  if (arguments.is_dry) {
    cli::print(describe_dry_run(config, network_of(config, host, command + " --dry-run")));
    return 0;
  }
  const cli::StopSignals signals;
  trainer::TrainOptions options = arguments.options;
  options.make_network = network_of(config, host, command);
  options.memory_of_batches = host.memory_of_batches;
  options.stop = &signals.stop();
  options.cluster = job::ClusterConfig::from_environment();
  const trainer::TrainOutcome outcome =
      train_job(config, options, [](const std::string& words) { cli::print(words); });
  if (outcome.finished) return 0;
  const int number = signals.stop() ? signals.signal_number() : SIGTERM;  // or of another rank
  if (!outcome.is_chief || outcome.last_checkpoint.empty()) return 128 + number;
  log_info("stopped by {}; {} continues from {}", number == SIGINT ? "SIGINT" : "SIGTERM",
           how_to_continue(config, options.cluster), shown_path(outcome.last_checkpoint));
  return 128 + number;
}

/// A table; a value is as wide as it may be in memory.
std::string describe_slices(const trainer::SlicedColumn& column, job::Loss loss) {
  const auto name_of = [](const trainer::Slice& slice) -> std::string {
    if (!slice.value) return "(others)";
    return slice.value->empty() ? "(empty)" : *slice.value;
  };
  std::size_t width = column.name.size();
  for (const trainer::Slice& slice : column.slices) width = std::max(width, name_of(slice).size());
  const auto metrics = trainer::slice_metrics_of(loss);
  const auto width_of = [](std::string_view metric) {
    return std::max<std::size_t>(8, metric.size());
  };
  std::string text = fmt::format("\n{:<{}}  {:>12}", printable(column.name), width, "examples");
  for (const auto& [name, value] : metrics) text += fmt::format("  {:>{}}", name, width_of(name));
  text += '\n';
  for (const trainer::Slice& slice : column.slices) {
    const trainer::Metrics& m = slice.metrics;
    text += fmt::format("{:<{}}  {:>12}", name_of(slice), width, with_commas(m.examples));
    for (const auto& [name, value] : metrics) {
      text += fmt::format("  {:>{}.6f}", m.*value, width_of(name));
    }
    text += '\n';
  }
  return text + "\n";
}

std::string describe_metrics(const trainer::Evaluation& e) {
  std::string text;
  for (const auto& [name, value] : trainer::metrics_of(e.loss_of_label)) {
    text += fmt::format("{:<12} {:.6f}\n", name, e.*value);
  }
  if (e.is_weighted) text += fmt::format("weight       {:.6g}\n", e.weight);
  if (const auto& grouped = e.grouped) {
    text +=
        fmt::format("gauc         {:.6f}\ngroups       {}\n", grouped->auc, grouped->num_groups);
  }
  for (const RankingAt& at : e.ranking.at) {
    text += fmt::format("{:<12} {:.6f}\n{:<12} {:.6f}\n", fmt::format("ndcg@{}", at.k), at.ndcg,
                        fmt::format("recall@{}", at.k), at.recall);
  }
  for (const trainer::SlicedColumn& column : e.slices)
    text += describe_slices(column, e.loss_of_label);
  return text;
}

/// What is not said by their names.
std::string meaning_of_metrics(const trainer::Evaluation& result) {
  std::vector<job::Loss> losses{result.loss_of_label};
  for (const trainer::Evaluation& label : result.labels) losses.push_back(label.loss_of_label);
  std::string text;
  if (std::ranges::count(losses, job::Loss::kBce) > 0) {
    text += fmt::format(
        "(logloss: p is clipped to [{0:.1e}, 1 - {0:.1e}]; ne: logloss / that of always predicting "
        "the mean label; calibration: mean p / mean label)\n",
        trainer::kClip);
  }
  if (std::ranges::count(losses, job::Loss::kMse) > 0) {
    text +=
        "(rmse: root of the mean squared error; mae: mean absolute error; r2: 1 - squared error "
        "/ that of always predicting the mean label)\n";
  }
  if (std::ranges::count(losses, job::Loss::kSoftmax) > 0) {
    text += fmt::format(
        "(accuracy: share of rows whose likeliest class is the label; logloss: p is at least "
        "{:.1e}; ne: logloss / that of always predicting the shares of the classes)\n",
        trainer::kClip);
  }
  return text;
}

struct EvalArguments {
  UsedJob used;
  std::vector<std::string> data;
  bool has_importance = false;
};

/// Says what each input is worth to the model. Returns false if a signal has ended it. Of the run's
/// own evaluation data the run's folder keeps it.
bool show_importance(const job::JobConfig& config,
                     const checkpoint::UsedCheckpoint& checkpoint,
                     bool is_of_run,
                     const std::atomic<bool>& stop,
                     const pipeline::MakeNetwork& network) {
  const trainer::Importance importance =
      trainer::permutation_importance(config, checkpoint, &stop, network);
  if (stop) return false;
  cli::print(describe_importance(importance));
  const std::string path = is_of_run ? write_importance(importance, checkpoint) : "";
  if (!path.empty()) log_info("{}: `satrap report` shows it with the run", shown_path(path));
  return true;
}

int eval(EvalArguments& arguments, const HostProgram& host) {
  UsedJob& used = arguments.used;
  job::JobConfig config = used.load(host);
  use_data(arguments.data, used.job, config);
  if (arguments.has_importance && std::ranges::count(config.data.eval.path, "-") > 0) {
    throw Error(ErrorCode::kInvalidConfig,
                "--importance: reads the rows again, and standard input can be read only once; "
                "write them to a file");
  }
  const cli::StopSignals signals(role_of(host));
  const pipeline::MakeNetwork network = used.network(config, host, "eval");
  const trainer::Evaluation result =
      trainer::evaluate(config, used.checkpoint, &signals.stop(), network);
  if (signals.stop()) return 128 + signals.signal_number();
  require_examples(result);
  if (host.take_evaluation) {
    host.take_evaluation(result);
    return 0;
  }
  cli::print(
      fmt::format("checkpoint   {}\nexamples     {}\n", used.checkpoint.name(), result.examples));
  if (result.labels.empty()) cli::print(describe_metrics(result));
  for (const trainer::Evaluation& label : result.labels) {
    cli::print(fmt::format("label        {}\n{}", label.label, describe_metrics(label)));
  }
  cli::print(meaning_of_metrics(result));
  if (arguments.has_importance &&
      !show_importance(config, used.checkpoint, arguments.data.empty(), signals.stop(), network)) {
    return 128 + signals.signal_number();
  }
  return 0;
}

}  // namespace

void add_train_command(CLI::App& program, const HostProgram& host, cli::Action& chosen) {
  CLI::App* command = program.add_subcommand("train", "Train a model");
  auto arguments = std::make_shared<TrainArguments>();
  arguments->job.add_to(*command);
  CLI::Option* resume = command->add_flag(
      "--resume", arguments->options.resume,
      "Continue from the newest checkpoint of the run directory; start afresh if it has none");
  CLI::Option* resume_from = command->add_option(
      "--resume-from", arguments->options.resume_from,
      "Continue from this checkpoint, or from the newest of this run directory");
  resume_from->type_name("DIR")->excludes(resume);
  command->add_flag(
      "--accept-changed-data", arguments->options.accept_changed_data,
      "With --resume or --resume-from: continue although training files that have been "
      "read were changed, removed, added or reordered. The row at which to continue is "
      "counted in the files as they are now");
  command
      ->add_flag("--overwrite", arguments->options.overwrite,
                 "Remove what an earlier run left in the run directory; with --label also replace "
                 "the configuration")
      ->excludes(resume)
      ->excludes(resume_from);
  command
      ->add_option("--label", arguments->label,
                   "CONFIG is data, maybe several files: first write a configuration for them, as "
                   "`satrap init` does, that predicts this column")
      ->type_name("COLUMN")
      ->excludes(resume)
      ->excludes(resume_from);
  command->add_flag("--dry-run", arguments->is_dry,
                    "Train nothing and write nothing: show the columns and the first batch of the "
                    "data, the model, its tables and the memory they need");
  cli::end_help(
      *command, "satrap train clicks.yaml run_dir=runs/dcn model=dcn_v2",
      "On SIGINT or SIGTERM the job writes a checkpoint and exits with 130 or 143; a second\n"
      "signal ends it at once.\n"
      "\n"
      "A network in Python (model.type: python) is trained by `python -m satrap train`, which "
      "takes\n"
      "the same arguments.");
  command->callback([&chosen, &host, arguments] {
    chosen = [&host, arguments] { return train(*arguments, host); };
  });
}

void add_eval_command(CLI::App& program, const HostProgram& host, cli::Action& chosen) {
  CLI::App* command =
      program.add_subcommand("eval", "Evaluate a checkpoint on a job's evaluation data");
  auto arguments = std::make_shared<EvalArguments>();
  arguments->used.add_to(*command);
  add_data_option(*command, arguments->data, "File or glob with labelled rows");
  command->add_flag("--importance", arguments->has_importance,
                    "Also how much logloss rises and AUC falls (of a number RMSE and MAE rise, of "
                    "classes accuracy falls), for several labels of the first, if the values of an "
                    "input are exchanged among the rows; scores them five times for each input");
  cli::end_help(*command, "satrap eval --checkpoint runs/clicks --data new.csv");
  command->callback([&chosen, &host, arguments] {
    chosen = [&host, arguments] { return eval(*arguments, host); };
  });
}

}  // namespace satrap::app
