#include "src/app/best_evaluation.h"

#include <cmath>

#include "satrap/job/job_config.h"

namespace satrap::app {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

double number_at(const Json& json, const std::string& pointer) {
  const Json::json_pointer at(pointer);
  return json.contains(at) && json[at].is_number() ? json[at].get<double>()
                                                   : std::numeric_limits<double>::quiet_NaN();
}

std::string setting(const Json& run, const std::string& key) {
  for (const Json& pair : run["config"]) {
    if (pair[0] == key) return pair[1];
  }
  return "";
}

bool rises(const std::string& metric) {
  const auto known = value_of<job::StoppingMetric>(metric, job::kStoppingMetrics);
  return known && job::should_rise(*known);
}

BestEvaluation best_evaluation(const Json& run) {
  const std::string wanted = setting(run, "train.early_stopping.metric");
  BestEvaluation best{.metric = wanted.empty() ? "auc" : wanted};
  const bool is_rising = rises(best.metric);
  for (const Json& line : run["evaluations"]) {
    best.last = number_at(line, "/eval/" + best.metric);
    const bool is_better = is_rising ? best.last > best.value : best.last < best.value;
    if (std::isfinite(best.value) && !is_better) continue;
    best.value = best.last;
    best.step = line["step"].get<std::int64_t>();
    best.numbers = line["eval"];
  }
  best.is_kept =
      number_at(run["summary"], "/early_stopping/best_step") == static_cast<double>(best.step);
  return best;
}

UsedEvaluation used_evaluation(const Json& run) {
  const BestEvaluation best = best_evaluation(run);
  double kept = number_at(run["summary"], "/early_stopping/best_step");
  const std::string patience = setting(run, "train.early_stopping.patience");
  const bool is_in_progress = run["summary"].is_null();
  if (is_in_progress && !patience.empty() && patience != "0" && std::isfinite(best.value)) {
    kept = static_cast<double>(best.step);
  }
  UsedEvaluation used;
  for (const Json& line : run["evaluations"]) {
    if (!line["eval"].is_object()) continue;
    const auto step = line["step"].get<std::int64_t>();
    used = {.step = step, .is_best = static_cast<double>(step) == kept, .numbers = line["eval"]};
    if (used.is_best) return used;
  }
  const Json::json_pointer at("/eval");
  if (used.step < 0 && run["summary"].contains(at) && run["summary"][at].is_object()) {
    used.numbers = run["summary"][at];
  }
  return used;
}

}  // namespace satrap::app
