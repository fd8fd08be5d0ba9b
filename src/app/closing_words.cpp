#include "src/app/closing_words.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "satrap/core/file.h"
#include "satrap/core/text.h"
#include "src/app/best_evaluation.h"

namespace satrap::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kManySteps = 100;        // fewer teach little
constexpr std::int64_t kGoodSteps = 200;  // what is proposed instead
constexpr double kNeGap = 0.1;            // of evaluation above training: overfitting
constexpr double kWorse = 0.002;          // of an AUC below the best one, or a share of a loss
constexpr std::int64_t kEnoughExamples = 100;
constexpr double kManyBadRows = 0.01;
constexpr double kTooGood = 0.99;    // an AUC
constexpr double kReversed = 0.45;   // the same, of groups on both sides of the split
constexpr double kNoSignal = 0.02;   // of an AUC from 0.5
constexpr double kMoreLoss = 0.05;   // a share of the best logloss
constexpr double kShift = 0.2;       // of the calibration from 1
constexpr double kMuchWait = 0.2;    // a share of the time
constexpr double kLongSeconds = 30;  // a start counts little then
constexpr std::size_t kShown = 5;    // names or reasons

std::string run_name(const Json& run) { return shown_path(run.value("path", "")); }

std::int64_t integer_setting(const Json& run, const std::string& key) {
  const std::string text = setting(run, key);
  return text.empty() ? 0 : std::strtoll(text.c_str(), nullptr, 10);
}

std::string names_text(const Json& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    text += (i > 0 ? ", " : "") + names[i].get<std::string>();
  }
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

// ------------------------------------------------------------------------------------- findings

std::string skipped_rows(const Json& summary) {
  const auto bad = summary.value("bad_rows", std::int64_t{0});
  if (bad == 0 || !summary.contains("bad_row_share")) return "";
  const double share = number_at(summary, "/bad_row_share");
  std::string text = fmt::format("skipped     {} row{} that could not be read, {:.2g} % of all\n",
                                 with_commas(bad), bad == 1 ? "" : "s", 100.0 * share);
  std::vector<std::pair<std::int64_t, std::string>> reasons;
  for (const auto& [reason, count] : summary["bad_row_reasons"].items()) {
    reasons.emplace_back(-count.get<std::int64_t>(), reason);
  }
  std::ranges::sort(reasons);
  for (std::size_t i = 0; i < std::min(reasons.size(), kShown); ++i) {
    text += fmt::format("{:>22}  {}\n", with_commas(-reasons[i].first), reasons[i].second);
  }
  return text;
}

std::string many_bad_rows(const Json& run) {
  if (!(number_at(run["summary"], "/bad_row_share") > kManyBadRows)) return "";
  return "more than 1 % of the rows were skipped, and the model has learned from the others alone: "
         "correct the data, or what data.schema says about the columns above";
}

std::string one_class(const Json& run) {
  const Json shares = run["summary"].value("positive_share", Json::object());
  for (const auto& [label, share] : shares.items()) {
    if (!share.is_number() || (share != 0.0 && share != 1.0)) continue;
    return fmt::format(
        "label '{}' is {} in all examples, so nothing can be learned from it: see `positive` and "
        "`threshold` of `satrap config explain data.schema.label`",
        label, share == 0.0 ? 0 : 1);
  }
  return "";
}

std::string constant_inputs(const Json& run) {
  const Json& summary = run["summary"];
  const Json names = summary.value("constant_inputs", Json::array());
  if (names.empty() || summary.value("examples", std::int64_t{0}) < kEnoughExamples) return "";
  return fmt::format("{} {} the same value in all examples: wrong column or type, or leave {} out",
                     names_text(names), names.size() == 1 ? "has" : "have",
                     names.size() == 1 ? "it" : "them");
}

/// The largest power of two with enough steps in the examples; 0: none is smaller than the batch.
std::int64_t smaller_batch(const Json& run) {
  constexpr std::int64_t kSmallest = 32;
  const std::int64_t batch = integer_setting(run, "data.batch_size");
  const auto examples = run["summary"].value("examples", std::int64_t{0});
  std::int64_t wanted = kSmallest;
  while (2 * wanted * kGoodSteps <= examples) wanted *= 2;
  return wanted < batch ? wanted : 0;
}

bool is_short(const Json& run) {
  return run["summary"].value("step", 0.0) < kManySteps &&
         integer_setting(run, "train.max_steps") == 0;
}

/// The settings for more steps; "": the run has enough, or was told to end.
std::string more_steps(const Json& run) {
  if (!is_short(run)) return "";
  if (const std::int64_t batch = smaller_batch(run))
    return fmt::format("data.batch_size={}", batch);
  const auto steps = std::max<std::int64_t>(1, run["summary"].value("step", std::int64_t{0}));
  const std::int64_t epochs = std::max<std::int64_t>(1, integer_setting(run, "train.epochs"));
  return fmt::format("train.epochs={}", epochs * ((kGoodSteps + steps - 1) / steps));
}

std::string too_few_steps(const Json& run) {
  const std::string remedy = more_steps(run);
  if (remedy.empty()) return "";
  const auto steps = run["summary"].value("step", std::int64_t{0});
  return fmt::format("only {} step{} of {} examples: a model needs hundreds; try {}",
                     with_commas(steps), steps == 1 ? "" : "s",
                     with_commas(integer_setting(run, "data.batch_size")), remedy);
}

bool has_early_stopping(const Json& run) { return run["summary"].contains("early_stopping"); }

/// "a, b or c"
std::string alternatives(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += (i == 0 ? "" : i + 1 < words.size() ? ", " : " or ") + words[i];
  }
  return text;
}

bool is_off(const Json& run, const std::string& key) {
  const std::string text = setting(run, key);
  return text.empty() || std::strtod(text.c_str(), nullptr) == 0.0;
}

/// The loss over that of always predicting the mean, in a section of a summary or in an evaluation:
/// ne, or of numbers 1 - r2. NaN: undefined.
double normalised_loss(const Json& json, const std::string& at = "") {
  const double ne = number_at(json, at + "/ne");
  return std::isfinite(ne) ? ne : 1.0 - number_at(json, at + "/r2");
}

const char* normalised_name(const Json& run) {
  return run["summary"].contains(Json::json_pointer("/train/r2")) ? "1 - r2" : "ne";
}

std::string overfitting(const Json& run) {
  const double train = normalised_loss(run["summary"], "/train"),
               eval = normalised_loss(run["summary"], "/eval");
  if (integer_setting(run, "train.epochs") < 2 || !(eval - train > kNeGap)) return "";
  const BestEvaluation best = best_evaluation(run);
  if (best.is_kept && best.step < run["summary"].value("step", std::int64_t{0})) return "";
  std::vector<std::string> remedies{"fewer train.epochs"};
  if (!has_early_stopping(run)) remedies.emplace_back("train.early_stopping");
  if (is_off(run, "model.dropout")) remedies.emplace_back("model.dropout");
  if (is_off(run, "tables.default.optimizer.weight_decay")) {
    remedies.emplace_back("tables.default.optimizer.weight_decay");
  }
  return fmt::format(
      "{} is {:.3f} on the training data and {:.3f} on the evaluation data: the model has learned "
      "its rows by heart; try {}",
      normalised_name(run), train, eval, alternatives(remedies));
}

/// Columns of features whose names are those of ids, as a user would divide rows by them.
std::vector<std::string> id_columns(const Json& run) {
  std::vector<std::string> names;
  for (const Json& pair : run["config"]) {
    const auto key = pair[0].get<std::string>();
    if (!key.starts_with("data.schema.features.") || !key.ends_with(".name")) continue;
    const auto name = pair[1].get<std::string>();
    const std::string lower = lower_case(name);
    if (lower.ends_with("id") || lower.find("user") != std::string::npos) names.push_back(name);
  }
  return names;
}

double used_auc(const Json& run) { return number_at(used_evaluation(run).numbers, "/auc"); }

std::string groups_on_both_sides(const Json& run) {
  const double auc = used_auc(run);
  if (!(auc < kReversed) || is_short(run)) return "";
  const std::vector<std::string> columns = id_columns(run);
  return fmt::format(
      "auc {:.3f} on the evaluation data is below 0.5: most likely rows of one group, such as the "
      "items of an impression, are on both sides of the split, and one tells the opposite of "
      "another; keep groups together with data.eval.by: COLUMN{}",
      auc, columns.empty() ? "" : fmt::format(" ({})", alternatives(columns)));
}

std::string inputs_without_signal(const Json& run) {
  const double auc = used_auc(run);
  if (!(std::fabs(auc - 0.5) <= kNoSignal) || is_short(run)) return "";
  return fmt::format(
      "auc {:.3f} on the evaluation data: the inputs do not tell the label; add columns that may, "
      "or look at what they hold (`satrap data stats`)",
      auc);
}

/// Says so if the checkpoint that is used has much more loss than the best evaluation.
std::string much_more_loss(const Json& run) {
  const double used = number_at(used_evaluation(run).numbers, "/logloss");
  double least = used;
  std::int64_t step = 0;
  for (const Json& line : run["evaluations"]) {
    const double loss = number_at(line, "/eval/logloss");
    if (!(loss < least)) continue;
    least = loss;
    step = line["step"].get<std::int64_t>();
  }
  if (!(used > (1.0 + kMoreLoss) * least)) return "";
  return fmt::format(
      "logloss {:.4f} of the checkpoint that is used is {:.0f} % above {:.4f} at step {}: its "
      "probabilities are further off; train.early_stopping.metric=logloss keeps that one",
      used, 100.0 * (used / least - 1.0), least, with_commas(step));
}

std::string worse_than_base_rate(const Json& run) {
  if (!overfitting(run).empty() || !groups_on_both_sides(run).empty() ||
      !inputs_without_signal(run).empty()) {
    return "";
  }
  const double eval = normalised_loss(used_evaluation(run).numbers);
  const bool has_eval = std::isfinite(eval);
  const double ne = has_eval ? eval : normalised_loss(run["summary"], "/train");
  if (!(ne > 1.0)) return "";
  const bool is_number = normalised_name(run) != std::string_view("ne");
  return fmt::format(
      "{} {:.3f} on the {} data is above 1: worse than predicting the {} for everyone; {}",
      normalised_name(run), ne, has_eval ? "evaluation" : "training",
      is_number ? "mean" : "base rate",
      is_short(run) ? "it has learned too little"
                    : "look at the learning rates (tables, dense_optimizer) and at inputs far from "
                      "0 (`satrap data stats`)");
}

std::string too_good(const Json& run) {
  const double auc = number_at(used_evaluation(run).numbers, "/auc");
  if (!(auc > kTooGood)) return "";
  return fmt::format(
      "auc {:.4f} on the evaluation data is too good for most problems: does an input tell the "
      "label, or is it known only afterwards? `satrap init` leaves out columns that tell it alone",
      auc);
}

std::string evaluation_on_training(const Json& run) {
  return run["summary"].value("eval_reads_training_rows", "");
}

std::string one_class_of_evaluation(const Json& run) {
  const Json& summary = run["summary"];
  const double examples = number_at(summary, "/eval/examples");
  const bool is_number = std::isfinite(number_at(summary, "/eval/rmse"));
  const bool has_loss = is_number || std::isfinite(number_at(summary, "/eval/logloss"));
  const bool has_classes = has_loss && summary["eval"].contains("accuracy");
  const char* const undefined = is_number ? "/eval/r2" : has_classes ? "/eval/ne" : "/eval/auc";
  if (!(examples > 1) || !has_loss || std::isfinite(number_at(summary, undefined))) return "";
  return fmt::format(
      "the labels of all {} evaluation examples are the same: {} not exist{}; "
      "choose other rows: data.eval.by: hash draws them from all",
      with_commas(static_cast<std::int64_t>(examples)),
      is_number     ? "r2 does"
      : has_classes ? "ne does"
                    : "auc and ne do",
      has_early_stopping(run) ? " and early stopping has nothing to compare" : "");
}

std::string shifted_base_rate(const Json& run) {
  const double calibration = number_at(used_evaluation(run).numbers, "/calibration");
  const bool is_far = calibration < 1.0 - kShift || calibration > 1.0 + kShift;
  if (!is_far || is_short(run)) return "";
  const Json shares = run["summary"].value("positive_share", Json::object());
  const bool is_known = shares.size() == 1 && shares.begin()->is_number();
  return fmt::format(
      "calibration {:.2f} on the evaluation data: predictions are {:.0f} % too {} there; do its "
      "rows have the share of positive labels of training{}?",
      calibration, 100.0 * std::fabs(calibration - 1.0), calibration < 1.0 ? "low" : "high",
      is_known ? fmt::format(", {:.3g} %", 100.0 * shares.begin()->get<double>()) : "");
}

std::string best_was_earlier(const Json& run) {
  const BestEvaluation best = best_evaluation(run);
  const double margin = rises(best.metric) ? kWorse : kWorse * best.value;
  if (!(std::fabs(best.last - best.value) > margin)) return "";
  const std::string remedy =
      best.is_kept ? fmt::format("eval, predict and export use that checkpoint ({}@last: the end)",
                                 run_name(run))
      : has_early_stopping(run) ? "no checkpoint of that step was kept, since the run was resumed"
                                : "with train.early_stopping.patience the best checkpoint is kept";
  return fmt::format("the evaluation was best at step {}: {} {:.4f}, at the end {:.4f}; {}",
                     with_commas(best.step), best.metric, best.value, best.last, remedy);
}

std::string waits_for_data(const Json& run) {
  const Json& summary = run["summary"];
  const double share = number_at(summary, "/data_wait_share");
  const bool is_topic = summary.contains("lag");  // whose messages come when they come
  if (is_topic || !(share > kMuchWait) || !(number_at(summary, "/seconds") > kLongSeconds)) {
    return "";
  }
  return fmt::format(
      "training waited for rows of the data {:.0f} % of the time: read them with more threads "
      "(data.reader_threads) or processes (satrap-run --loaders), or keep them parsed (data.cache)",
      100.0 * share);
}

std::string next_command(const Json& run) {
  const std::string name = run_name(run);
  const bool is_python = setting(run, "model.type") == "python";
  if (is_python && setting(run, "model.path").empty()) {  // no command computes its network
    return fmt::format("satrap report {}", name);
  }
  const char* const program = is_python ? "python -m satrap" : "satrap";
  if (!run["summary"].contains("eval")) {
    return fmt::format("{} eval --checkpoint {} --data FILE", program, name);
  }
  return fmt::format("{} predict --checkpoint {} --data FILE --out FILE", program, name);
}

}  // namespace

std::vector<std::string> findings(const Json& run) {
  std::vector<std::string> found;
  for (const auto find :
       {many_bad_rows, one_class, constant_inputs, too_few_steps, evaluation_on_training,
        one_class_of_evaluation, too_good, groups_on_both_sides, inputs_without_signal,
        worse_than_base_rate, shifted_base_rate, overfitting, best_was_earlier, much_more_loss,
        waits_for_data}) {
    std::string finding = find(run);
    if (!finding.empty()) found.push_back(std::move(finding));
  }
  return found;
}

std::string closing_words(const Json& run) {
  std::string text = skipped_rows(run["summary"]);
  for (const std::string& finding : findings(run)) text += "look at     " + finding + "\n";
  return text + "next        " + next_command(run) + "\n";
}

}  // namespace satrap::app
