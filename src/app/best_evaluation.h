#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include <nlohmann/json.hpp>

namespace satrap::app {

/// The best evaluation of a run, as read_run gives it.
struct BestEvaluation {
  std::string metric;  // that of train.early_stopping, by default auc
  std::int64_t step = 0;
  double value = std::numeric_limits<double>::quiet_NaN();  // NaN: there is none
  double last = std::numeric_limits<double>::quiet_NaN();   // of the last evaluation
  bool is_kept = false;  // the checkpoint of its step, by early stopping
  nlohmann::ordered_json numbers = nullptr;
};
BestEvaluation best_evaluation(const nlohmann::ordered_json& run);

/// The evaluation of the checkpoint that eval, predict and export use: the best one that early
/// stopping has kept, else the last.
struct UsedEvaluation {
  std::int64_t step = -1;                                             // -1: unknown
  bool is_best = false;                                               // by early stopping
  nlohmann::ordered_json numbers = nlohmann::ordered_json::object();  // empty: there is none
};
UsedEvaluation used_evaluation(const nlohmann::ordered_json& run);

/// Whether larger values of a metric are better.
bool rises(const std::string& metric);

/// The number at a pointer such as "/eval/ne"; NaN: none.
double number_at(const nlohmann::ordered_json& json, const std::string& pointer);

/// The value of a key of the run's configuration; "": it has none.
std::string setting(const nlohmann::ordered_json& run, const std::string& key);

}  // namespace satrap::app
