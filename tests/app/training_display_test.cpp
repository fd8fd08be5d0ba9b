#include "src/app/training_display.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "tests/support/temporary_directory.h"

namespace satrap::app {
namespace {

using testing::HasSubstr;
using testing::Not;

class DescribeSummary : public testing::Test {
 protected:
  std::string describe(const std::string& json) {
    const std::string path = directory_.path() + "/summary.json";
    write_file_atomic(path, json);
    return describe_summary(path);
  }
  TemporaryDirectory directory_;
};

TEST_F(DescribeSummary, ShowsMetricsAndThePlaceOfTheFile) {
  const std::string text = describe(R"({
    "step": 12, "examples": 1200, "seconds": 2.0, "examples_per_second": 600.0,
    "train": {"loss": 0.5, "auc": 0.75, "ne": 0.9},
    "eval": {"auc": 0.7, "logloss": 0.55, "ne": 0.95, "calibration": 1.01}})");
  EXPECT_THAT(text, HasSubstr("12 steps, 1200 examples"));
  EXPECT_THAT(text, HasSubstr("600 examples/s"));
  EXPECT_THAT(text, HasSubstr("loss 0.50000  auc 0.75000"));
  EXPECT_THAT(text, HasSubstr("auc 0.70000  logloss 0.55000"));
  EXPECT_THAT(text, HasSubstr(directory_.path() + "/summary.json"));
}

TEST_F(DescribeSummary, UndefinedNumbersAreDashes) {
  const std::string text = describe(R"({"step": 1, "train": {"loss": 0.1, "auc": null}})");
  EXPECT_THAT(text, HasSubstr("loss 0.10000  auc -"));
  EXPECT_THAT(text, Not(HasSubstr("eval")));
}

TEST_F(DescribeSummary, TextThatIsNotJsonIsAnError) {
  EXPECT_THROW(describe("{\"step\": "), Error);
}

}  // namespace
}  // namespace satrap::app
