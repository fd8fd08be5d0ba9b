#include "src/app/training_display.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "satrap/core/file.h"
#include "satrap/core/log.h"
#include "satrap/core/text.h"
#include "satrap/core/thread_group.h"

namespace satrap::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kNotableWait = 0.2;

std::string metric(double value, const char* format) {
  return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : "-";
}

std::string share_text(double share) {
  return share < 0.0 ? "" : fmt::format("{:3.0f}%", std::floor(100.0 * share));
}

/// "[####......]", or nothing for an unknown share.
std::string bar(double share) {
  constexpr int kWidth = 10;
  if (share < 0.0) return "";
  const int done = std::clamp(static_cast<int>(share * kWidth), 0, kWidth);
  return fmt::format("[{:.<{}}] ", std::string(static_cast<std::size_t>(done), '#'), kWidth);
}

/// The shares of waiting, of the dense network and of memory.
std::string shares(const trainer::Report& r) {
  std::string text = fmt::format("  input wait {:.0f}%", 100.0 * r.wait_share);
  if (r.data_wait_share > kNotableWait) {
    text += fmt::format(", for data {:.0f}%", 100.0 * r.data_wait_share);
  }
  if (r.lag >= 0) text += fmt::format("  lag {}", format_count(static_cast<double>(r.lag)));
  if (r.age >= 0.0) text += "  age " + format_duration(r.age);
  if (r.device_share >= 0.0) text += fmt::format("  gpu {:.0f}%", 100.0 * r.device_share);
  if (r.hit_rate >= 0.0) text += fmt::format("  cache hits {:.1f}%", 100.0 * r.hit_rate);
  return text;
}

/// The loss and what it is best known by: AUC, the root of the squared error, the share of hits.
std::string metrics(const trainer::Report& r) {
  const trainer::NamedMetric& first = trainer::metrics_of(r.loss_of_label).front();
  return fmt::format("  loss {}  {} {}", metric(r.window.loss, "{:.4f}"), first.name,
                     metric(r.window.*first.value, "{:.4f}"));
}

/// Metrics of a section of a summary, such as "/eval": "auc 0.7  logloss 0.4".
std::string section_metrics(const Json& summary, const std::string& at, bool is_training) {
  const auto number = [&](const char* name, const char* format) {
    const Json::json_pointer place(at + "/" + name);
    return summary.contains(place) && summary[place].is_number()
               ? metric(summary[place].get<double>(), format)
               : std::string("-");
  };
  const auto has = [&](const char* name) {
    return summary.contains(Json::json_pointer(at + "/" + name));
  };
  std::string text = is_training ? "loss " + number("loss", "{:.5f}") + "  " : "";
  if (has("rmse")) {
    return text + fmt::format("rmse {}  mae {}  r2 {}", number("rmse", "{:.5f}"),
                              number("mae", "{:.5f}"), number("r2", "{:.4f}"));
  }
  text += has("accuracy") ? "accuracy " + number("accuracy", "{:.5f}")
                          : "auc " + number("auc", "{:.5f}");
  if (!is_training) text += "  logloss " + number("logloss", "{:.5f}");
  text += "  ne " + number("ne", "{:.4f}");
  if (!is_training && has("calibration")) {
    text += "  calibration " + number("calibration", "{:.4f}");
  }
  return text;
}

std::string time_left(double seconds) {
  return seconds > 0.0 ? "  eta " + format_duration(seconds) : "";
}

/// The numbers of a report, most important first.
std::string numbers(const trainer::Report& r) {
  return fmt::format("step {}  {} examples/s", r.step, format_count(r.examples_per_second)) +
         metrics(r) + time_left(r.eta_seconds) + shares(r);
}

std::string describe_cache(const Json& cache) {
  if (!cache["hit_rate"].is_number()) return "";
  std::string text =
      fmt::format("cache       hits {:.2f}% of the needed rows; {} fetched, {} written back",
                  100.0 * cache["hit_rate"].get<double>(),
                  format_bytes(cache["bytes_fetched"].get<std::int64_t>()),
                  format_bytes(cache["bytes_written"].get<std::int64_t>()));
  if (cache["halving_bytes"].is_number()) {
    text += fmt::format("; {} would about halve the misses of rows seen before",
                        format_bytes(cache["halving_bytes"].get<std::int64_t>()));
  }
  return text + "\n";
}

}  // namespace

double RecentRate::add(double seconds, std::int64_t examples) {
  counts_.emplace_back(seconds, examples);
  while (counts_.size() > 2 && counts_[1].first <= seconds - kSeconds) counts_.pop_front();
  const auto& [first_seconds, first_examples] = counts_.front();
  if (seconds <= first_seconds) return -1.0;
  return static_cast<double>(examples - first_examples) / (seconds - first_seconds);
}

// A narrow terminal cuts the end: in 80 columns metrics and the time left stay, also behind the
// name of a rank.
std::string progress_text(const trainer::LiveProgress& live,
                          const std::optional<trainer::Report>& report,
                          double age,
                          double rate) {
  const trainer::LiveProgress::Trained trained = live.trained();
  const double share = trained.share;
  std::string text = bar(share) + share_text(share) + (share < 0.0 ? "" : "  ") + live.phase_name();
  const auto phase = live.phase.load();
  if (phase == trainer::LiveProgress::Phase::kEvaluating) {
    text += fmt::format("  {} examples", format_count(static_cast<double>(live.evaluated)));
  }
  const bool is_training = phase == trainer::LiveProgress::Phase::kTraining;
  if (report) text += metrics(*report);
  if (report && is_training) text += time_left(report->eta_seconds - age);
  if (trained.step > 0) text += fmt::format("  step {}", trained.step);
  if (is_training && rate >= 0.0) text += fmt::format("  {} examples/s", format_count(rate));
  return report && is_training ? text + shares(*report) : text;
}

TrainingDisplay::TrainingDisplay() {
  if (line_.is_visible()) thread_ = start_thread("display", [this] { redraw_until_closed(); });
}

TrainingDisplay::~TrainingDisplay() {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    is_closed_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

double TrainingDisplay::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void TrainingDisplay::redraw_until_closed() {
  constexpr std::chrono::milliseconds kEvery(200);
  RecentRate rate;
  const MutexLock lock(mutex_);
  while (!is_closed_) {
    const double now = seconds();
    const trainer::LiveProgress::Trained trained = live_.trained();
    const double recent = trained.step > 0 ? rate.add(now, trained.examples) : -1.0;
    line_.show(progress_text(live_, report_, now - report_seconds_, recent));
    changed_.wait_until(mutex_, std::chrono::steady_clock::now() + kEvery);
  }
}

void TrainingDisplay::show(const trainer::Report& report) {
  if (line_.is_visible()) {
    {
      const MutexLock lock(mutex_);
      report_ = report;
      report_seconds_ = seconds();
    }
    changed_.notify_one();  // a short run is seen too
    return;
  }
  if (!report.is_due) return;
  const std::string share = share_text(report.progress);
  const bool has_ne = report.loss_of_label != job::Loss::kMse;
  log_info("{}{}{}{}  staleness {:.2f}", share, share.empty() ? "" : "  ", numbers(report),
           has_ne ? "  ne " + metric(report.window.ne, "{:.4f}") : "", report.mean_staleness);
}

std::string describe_summary(const Json& summary, const std::string& path) {
  const auto number = [&](const char* pointer, const char* format) {
    const Json::json_pointer at(pointer);
    return summary.contains(at) && summary[at].is_number()
               ? metric(summary[at].get<double>(), format)
               : std::string("-");
  };
  // Steps and examples are those of the whole job, the time is this process's.
  std::string text = fmt::format("trained     {} steps, {} examples{} in {} ({} examples/s)\n",
                                 number("/step", "{:.0f}"), number("/examples", "{:.0f}"),
                                 summary.value("resumed", false) ? "; resumed, and finished" : "",
                                 format_duration(summary.value("seconds", 0.0)),
                                 number("/examples_per_second", "{:.0f}"));
  text += fmt::format("train       {}\n", section_metrics(summary, "/train", /*is_training=*/true));
  if (summary.contains("eval")) {
    const bool is_binary = summary["eval"].contains("calibration");
    text += fmt::format("eval        {}{}\n", section_metrics(summary, "/eval", false),
                        is_binary ? " (mean p / mean label)" : "");
  }
  if (summary.contains(Json::json_pointer("/eval/gauc"))) {
    text += fmt::format("            gauc {} of {} groups\n", number("/eval/gauc", "{:.5f}"),
                        number("/eval/groups", "{:.0f}"));
  }
  if (const Json::json_pointer labels("/eval/labels"); summary.contains(labels)) {
    for (const auto& [name, unused] : summary[labels].items()) {
      const Json::json_pointer at = labels / name;
      const bool is_number = summary[at].contains("rmse");
      const char* const first = is_number ? "rmse" : "auc";
      const char* const second = is_number ? "mae" : "logloss";
      text += fmt::format("            {}: {} {}  {} {}\n", name, first,
                          number((at / first).to_string().c_str(), "{:.5f}"), second,
                          number((at / second).to_string().c_str(), "{:.5f}"));
    }
  }
  if (summary.contains("early_stopping")) {
    const Json& early = summary["early_stopping"];
    text += fmt::format("best eval   {} {} at step {}{}\n", early.value("metric", ""),
                        number("/early_stopping/best_value", "{:.5f}"),
                        number("/early_stopping/best_step", "{:.0f}"),
                        early.value("stopped", false) ? "; stopped early" : "");
    if (const auto eval = early.find("eval"); eval != early.end() && eval->is_object()) {
      text += fmt::format("            {}: the checkpoint that eval, predict and export use\n",
                          section_metrics(summary, "/early_stopping/eval", false));
    }
  }
  if (summary.contains("cache")) text += describe_cache(summary["cache"]);
  return text + fmt::format("summary     {}\n", shown_path(path));
}

}  // namespace satrap::app
