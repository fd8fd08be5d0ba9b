#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <sys/types.h>

#include "satrap/app/host_program.h"
#include "satrap/dense/external_network.h"
#include "satrap/job/job_config.h"
#include "satrap/trainer/trainer.h"

namespace satrap::engine {

/// A run of a job, or a command of `satrap`, on a thread of its own ("train"), whose dense network
/// another thread computes, the caller of next_call and answer. Functions are for that thread, but
/// stop().
class Run {
 public:
  /// A run. `num_parameters`: of the network, for the user; nullopt: the network is satrap's own,
  /// and no call comes. `num_summed`: floats that the program has summed over ranks in each step.
  /// Starts the thread. What `options` point to must outlive the run.
  Run(const job::JobConfig& config,
      trainer::TrainOptions options,
      std::optional<std::int64_t> num_parameters,
      std::int64_t num_summed);

  /// A command. If its job has a network in Python, the first call is a kMake for config(). `job`:
  /// takes the place of the checkpoint's own, and evaluation() of what is printed.
  Run(std::vector<std::string> words, std::optional<job::JobConfig> job);

  ~Run();  // closes; in a copy of the process (fork), which has no such thread, it does nothing
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// The call that is to be answered; nullptr if none comes within `time`, or none will come.
  dense::NetworkCall* next_call(std::chrono::milliseconds time);
  void answer() { calls_.answer(); }
  bool has_ended() const { return calls_.has_ended(); }

  void stop() { stop_ = true; }                     // as a signal stops the command
  void decline_steps() { calls_.decline_steps(); }  // the next step, or this one, is not trained
  void fail(const std::string& why) { calls_.fail(why); }

  /// Ends the run at once, if it is not over: its last checkpoint stays.
  void close();

  /// Once it has ended. Rethrows its error.
  const trainer::TrainOutcome& result();
  int status() const { return status_; }                         // of the command
  const std::string& evaluation() const { return evaluation_; }  // of the command; JSON
  const job::JobConfig& config() const { return config_; }
  const std::string& words() const { return words_; }  // about the finished run
  const std::string& run_dir() const { return config_.run_dir; }

  /// What a step of the program writes and finds summed in its kApply: [num_summed].
  std::span<float> summed() {
    return std::span(summed_).subspan(dense::GradientSource::kFlagFloats);
  }

 private:
  pipeline::MakeNetwork ask_for_network(const job::JobConfig& config);
  pipeline::MakeNetwork network(std::int64_t num_parameters);
  template <class Work>
  void start(Work work);
  void join() {
    if (thread_.joinable()) thread_.join();
  }

  const pid_t process_;
  job::JobConfig config_;
  trainer::TrainOptions options_;
  std::vector<float> summed_;                      // after the floats of the flag
  std::shared_ptr<const void> memory_of_batches_;  // for as long as the program may look at it
  dense::NetworkCalls calls_;
  std::atomic<bool> stop_ = false;
  trainer::TrainOutcome outcome_;  // these of the thread, until it has ended
  std::string words_, evaluation_;
  int status_ = 0;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace satrap::engine
