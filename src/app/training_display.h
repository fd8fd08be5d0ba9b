#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <nlohmann/json_fwd.hpp>

#include "satrap/core/mutex.h"
#include "satrap/core/progress_line.h"
#include "satrap/trainer/trainer.h"

namespace satrap::app {

/// The examples per second of the last seconds, from a count that is looked at now and then.
class RecentRate {
 public:
  /// `seconds` must ascend. Returns the rate; negative: unknown yet.
  double add(double seconds, std::int64_t examples);

 private:
  static constexpr double kSeconds = 3.0;
  std::deque<std::pair<double, std::int64_t>> counts_;
};

/// One state of the line on a terminal. `report`: the newest, if there is one, made `age` seconds
/// ago; `rate`: examples per second, negative: unknown.
std::string progress_text(const trainer::LiveProgress& live,
                          const std::optional<trainer::Report>& report,
                          double age,
                          double rate);

/// Shows the progress of a training job on stderr for as long as it lives: on a terminal one line
/// that a thread redraws several times a second; elsewhere a log line per report that is due.
class TrainingDisplay {
 public:
  TrainingDisplay();
  ~TrainingDisplay();
  TrainingDisplay(const TrainingDisplay&) = delete;
  TrainingDisplay& operator=(const TrainingDisplay&) = delete;

  /// Called by the thread of train().
  void show(const trainer::Report& report);

  /// Here train() tells its progress; nullptr: nobody watches.
  trainer::LiveProgress* live() { return line_.is_visible() ? &live_ : nullptr; }

 private:
  void redraw_until_closed();
  double seconds() const;

  ProgressLine line_;
  trainer::LiveProgress live_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  Mutex mutex_;
  CondVar changed_;
  bool is_closed_ SATRAP_GUARDED_BY(mutex_) = false;
  std::optional<trainer::Report> report_ SATRAP_GUARDED_BY(mutex_);
  double report_seconds_ SATRAP_GUARDED_BY(mutex_) = 0.0;  // when it was made
  std::thread thread_;
};

/// The result of a job in a few lines, from the content of summary.json; `path`: where that is.
std::string describe_summary(const nlohmann::ordered_json& summary, const std::string& path);

}  // namespace satrap::app
