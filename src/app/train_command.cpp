#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "checkpoint_paths.h"
#include "closing_words.h"
#include "commands.h"
#include "expectation.h"
#include "init_job.h"
#include "job_arguments.h"
#include "job_preview.h"
#include "machine.h"
#include "report_page.h"
#include "run_record.h"
#include "satrap/cli/output.h"
#include "satrap/cli/stop_signals.h"
#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/log.h"
#include "satrap/data/remote_folder.h"
#include "satrap/trainer/run_series.h"
#include "satrap/trainer/trainer.h"
#include "training_display.h"

namespace satrap::app {
namespace {

struct TrainArguments {
  JobArguments job;
  std::string label;  // not empty: the job's configuration is made first, for data in its place
  trainer::TrainOptions options;
  bool is_dry = false;
};

/// A finished job does not fail because its report cannot be written.
void try_report(const std::string& run_dir) {
  try {
    write_report_page({run_dir}, report_path(run_dir));
  } catch (const std::exception& error) {
    log_warning("no report: {}", error.what());
  }
}

/// The command that continues this run, whatever was overridden when it was started.
std::string how_to_continue(const job::JobConfig& config, const job::ClusterConfig& cluster) {
  if (cluster.num_ranks > 1 || cluster.num_shards > 0) {
    return "the command that started the job, with `-- --resume` at its end,";
  }
  if (data::is_url(config.run_dir)) {
    return fmt::format("`satrap train CONFIG run_dir={} --resume`", config.run_dir);
  }
  return fmt::format("`satrap train {}/config.yaml --resume`", shown_path(config.run_dir));
}

/// What stands in place of the configuration are data: writes one for them, and takes it instead.
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
  init_job(request, arguments.options.overwrite);
  job.config = request.config;
}

/// Whether a launcher, a scheduler or a supervisor has started this process: what starts the same
/// command again after a failure.
bool is_started_by_program() {
  constexpr std::array kVariables = {"SATRAP_STORE",    "RANK",      "TORCHELASTIC_RUN_ID",
                                     "SLURM_JOB_ID",    "PBS_JOBID", "LSB_JOBID",
                                     "AWS_BATCH_JOB_ID"};
  const auto is_set = [](const char* name) { return std::getenv(name) != nullptr; };
  if (std::ranges::any_of(kVariables, is_set)) return true;
  // The first process of a container, or a system's service; a user's service.
  const char* service = std::getenv("SYSTEMD_EXEC_PID");
  return getpid() == 1 || getppid() == 1 ||
         (service != nullptr && std::to_string(getpid()) == service);
}

/// Of a job whose run_dir nobody named each run has a folder of its own. What starts a job again
/// without --resume is to be told that there is a run, not to begin another.
void choose_run_dir(job::JobConfig& config, const trainer::TrainOptions& options) {
  const std::string& first = config.default_run_dir;
  if (first.empty() || is_started_by_program()) return;
  const bool is_new = !options.resume && options.resume_from.empty() && !options.overwrite;
  config.run_dir = is_new ? trainer::next_run(first) : trainer::newest_run(first);
  if (config.run_dir == first) return;
  log_info("run_dir: {}, {} {}", shown_path(config.run_dir),
           is_new ? "a new folder beside" : "the newest of the runs that began with",
           shown_path(first));
}

int train(TrainArguments& arguments) {
  if (!arguments.label.empty()) init_first(arguments);
  if (arguments.options.accept_changed_data && !arguments.options.resume &&
      arguments.options.resume_from.empty()) {
    throw Error(
        ErrorCode::kInvalidConfig,
        "--accept-changed-data is for a run that continues: with --resume or --resume-from");
  }
  job::JobConfig config = arguments.job.load();
  choose_run_dir(config, arguments.options);
  if (arguments.is_dry) {
    cli::print(describe_dry_run(config));
    return 0;
  }
  const cli::StopSignals signals;
  trainer::TrainOptions options = arguments.options;
  if (!options.resume_from.empty()) options.resume_from = newest_checkpoint(options.resume_from);
  options.stop = &signals.stop();
  options.cluster = job::ClusterConfig::from_environment();
  options.machine = describe_machine();
  trainer::TrainOutcome outcome;
  {
    TrainingDisplay display;
    options.on_report = [&](const trainer::Report& report) { display.show(report); };
    options.live = display.live();
    outcome = trainer::train(config, options);
  }
  if (outcome.is_chief && !outcome.summary_path.empty()) try_report(config.run_dir);
  if (outcome.finished) {
    if (outcome.is_chief) {
      const nlohmann::ordered_json run = read_run(config.run_dir);
      cli::print(describe_summary(run["summary"], config.run_dir + "/summary.json") +
                 fmt::format("report      {}\n", shown_path(report_path(config.run_dir))) +
                 closing_words(run));
      check_expectation(config.train.expect, run["summary"]);
    }
    return 0;
  }
  const int number = signals.stop() ? signals.signal_number() : SIGTERM;  // or of another rank
  if (!outcome.is_chief || outcome.last_checkpoint.empty()) return 128 + number;
  log_info("stopped by {}; {} continues from {}", number == SIGINT ? "SIGINT" : "SIGTERM",
           how_to_continue(config, options.cluster), shown_path(outcome.last_checkpoint));
  return 128 + number;
}

std::string describe_metrics(const trainer::Evaluation& e) {
  std::string text = fmt::format(
      "auc          {:.6f}\nlogloss      {:.6f}\nne           {:.6f}\ncalibration  {:.6f}\n", e.auc,
      e.logloss, e.ne, e.calibration);
  if (const auto& grouped = e.grouped) {
    text +=
        fmt::format("gauc         {:.6f}\ngroups       {}\n", grouped->auc, grouped->num_groups);
  }
  return text;
}

struct EvalArguments {
  UsedJob used;
  std::vector<std::string> data;
};

int eval(EvalArguments& arguments) {
  UsedJob& used = arguments.used;
  job::JobConfig config = used.load();
  use_data(arguments.data, config);
  const cli::StopSignals signals;
  const trainer::Evaluation result = trainer::evaluate(config, used.checkpoint, &signals.stop());
  if (signals.stop()) return 128 + signals.signal_number();
  cli::print(
      fmt::format("checkpoint   {}\nexamples     {}\n", used.checkpoint.name(), result.examples));
  if (result.labels.empty()) cli::print(describe_metrics(result));
  for (const trainer::Evaluation& label : result.labels) {
    cli::print(fmt::format("label        {}\n{}", label.label, describe_metrics(label)));
  }
  cli::print(
      fmt::format("(logloss: p is clipped to [{0:.1e}, 1 - {0:.1e}]; ne: logloss / that of always "
                  "predicting the mean label; calibration: mean p / mean label)\n",
                  trainer::kClip));
  return 0;
}

}  // namespace

void add_train_command(CLI::App& program, cli::Action& chosen) {
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
  command->footer(
      "On SIGINT or SIGTERM the job writes a checkpoint and exits with 130 or 143; a second\n"
      "signal ends it at once.");
  command->callback([&chosen, arguments] { chosen = [arguments] { return train(*arguments); }; });
}

void add_eval_command(CLI::App& program, cli::Action& chosen) {
  CLI::App* command =
      program.add_subcommand("eval", "Evaluate a checkpoint on a job's evaluation data");
  auto arguments = std::make_shared<EvalArguments>();
  arguments->used.add_to(*command);
  add_data_option(*command, arguments->data, "File or glob with labelled rows");
  command->callback([&chosen, arguments] { chosen = [arguments] { return eval(*arguments); }; });
}

}  // namespace satrap::app
