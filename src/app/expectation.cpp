#include "src/app/expectation.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/core/text.h"
#include "src/app/best_evaluation.h"

namespace satrap::app {

void check_expectation(const job::ExpectConfig& expect, const nlohmann::ordered_json& summary) {
  if (!expect.is_on()) return;
  const auto examples = summary.value("examples", std::int64_t{0});
  if (examples < expect.min_examples) {
    log_info("train.expect: no AUC is expected after {} examples, only after {}",
             with_commas(examples), with_commas(expect.min_examples));
    return;
  }
  const double auc = number_at(summary, "/eval/auc");
  const double low = expect.auc.front(), high = expect.auc.back();
  if (auc >= low && auc <= high) return;
  throw Error(
      ErrorCode::kDiverged,
      fmt::format("train.expect.auc: the evaluation has {}, expected {} to {}; look at {}",
                  std::isfinite(auc) ? fmt::format("{:.4f}", auc) : "none", low, high,
                  auc > high ? "whether an input tells the label, or rows of the evaluation were "
                               "trained on"
                             : "what is said above, at whether all files are there and at what was "
                               "changed in the configuration"));
}

}  // namespace satrap::app
