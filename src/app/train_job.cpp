#include "satrap/app/train_job.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "satrap/core/file.h"
#include "satrap/core/log.h"
#include "satrap/core/text.h"
#include "satrap/trainer/run_series.h"
#include "src/app/checkpoint_paths.h"
#include "src/app/closing_words.h"
#include "src/app/expectation.h"
#include "src/app/machine.h"
#include "src/app/report_page.h"
#include "src/app/run_record.h"
#include "src/app/training_display.h"

namespace satrap::app {
namespace {

/// A finished job does not fail because its report cannot be written.
void try_report(const std::string& run_dir) {
  try {
    write_report_page({run_dir}, report_path(run_dir));
  } catch (const std::exception& error) {
    log_warning("no report: {}", error.what());
  }
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

}  // namespace

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

trainer::TrainOutcome train_job(const job::JobConfig& config,
                                trainer::TrainOptions options,
                                const std::function<void(const std::string&)>& tell) {
  if (!options.resume_from.empty()) options.resume_from = newest_checkpoint(options.resume_from);
  options.machine = describe_machine();
  trainer::TrainOutcome outcome;
  if (options.on_report) {
    outcome = trainer::train(config, options);
  } else {
    TrainingDisplay display;
    options.on_report = [&](const trainer::Report& report) { display.show(report); };
    options.live = display.live();
    outcome = trainer::train(config, options);
  }
  if (outcome.is_chief && !outcome.summary_path.empty()) try_report(config.run_dir);
  if (outcome.finished && outcome.is_chief) {
    const nlohmann::ordered_json run = read_run(config.run_dir);
    tell(describe_summary(run["summary"], config.run_dir + "/summary.json") +
         fmt::format("report      {}\n", shown_path(report_path(config.run_dir))) +
         closing_words(run));
    check_expectation(config.train.expect, run["summary"]);
  }
  return outcome;
}

}  // namespace satrap::app
