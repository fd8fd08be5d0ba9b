#include "src/app/run_record.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "src/app/report_page.h"
#include "tests/support/temporary_directory.h"

namespace satrap::app {
namespace {

using Json = nlohmann::ordered_json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class ReadRun : public testing::Test {
 protected:
  ReadRun() { std::filesystem::create_directory(run_); }

  void write(const std::string& name, const std::string& text) {
    write_file_atomic(run_ + "/" + name, text);
  }
  Json read(const std::string& metrics) {
    write("metrics.jsonl", metrics);
    return read_run(run_);
  }

  template <class T = std::int64_t>
  static std::vector<T> all(const Json& lines, const std::string& field) {
    std::vector<T> values;
    for (const Json& line : lines) values.push_back(line[field].get<T>());
    return values;
  }

  std::pair<ErrorCode, std::string> error() const {
    try {
      read_run(run_);
    } catch (const Error& error) {
      return {error.code(), error.what()};
    }
    ADD_FAILURE() << "did not throw";
    return {ErrorCode::kInternal, ""};
  }

  TemporaryDirectory directory_;
  std::string run_ = directory_.path() + "/run-7";
};

TEST_F(ReadRun, SortsLinesByWhatTheyTell) {
  const Json run = read(R"({"step": 0, "start": {"version": "1"}}
{"step": 5, "seconds": 1.5, "train": {"auc": 0.6}}
{"step": 5, "seconds": 2.0, "eval": {"auc": 0.7}}
{"step": 9, "seconds": 3.0, "train": {"auc": null}}
)");
  EXPECT_EQ(run["name"], "run-7");
  EXPECT_EQ(run["path"], run_);
  EXPECT_THAT(all(run["starts"], "step"), ElementsAre(0));
  EXPECT_EQ(run["starts"][0]["start"]["version"], "1");
  EXPECT_THAT(all(run["reports"], "step"), ElementsAre(5, 9));
  EXPECT_TRUE(run["reports"][1]["train"]["auc"].is_null());
  EXPECT_THAT(all<double>(run["evaluations"], "time"), ElementsAre(2.0));
  EXPECT_TRUE(run["summary"].is_null());
}

TEST_F(ReadRun, TimeGoesOnWhereARunWasResumed) {
  const Json run = read(R"({"step": 0, "start": {}}
{"step": 5, "seconds": 10}
{"step": 5, "start": {}}
{"step": 7, "seconds": 12}
{"step": 7, "start": {}}
{"step": 8, "seconds": 1}
)");
  EXPECT_THAT(all<double>(run["starts"], "time"), ElementsAre(0, 10, 22));
  EXPECT_THAT(all<double>(run["reports"], "time"), ElementsAre(10, 22, 23));
  EXPECT_THAT(all(run["reports"], "process"), ElementsAre(1, 2, 3));
}

TEST_F(ReadRun, LaterLinesWinWhereStepsGoBack) {
  const Json run = read(R"({"step": 0, "start": {}}
{"step": 5, "seconds": 1, "examples": 1}
{"step": 10, "seconds": 2, "examples": 2}
{"step": 10, "seconds": 3, "eval": {}}
{"step": 15, "seconds": 4, "examples": 3}
{"step": 10, "start": {}}
{"step": 10, "seconds": 1, "examples": 4}
{"step": 12, "seconds": 2, "examples": 5}
)");
  EXPECT_THAT(all(run["reports"], "step"), ElementsAre(5, 10, 12));
  EXPECT_THAT(all(run["reports"], "examples"), ElementsAre(1, 4, 5));
  EXPECT_THAT(all(run["evaluations"], "step"), ElementsAre(10));
  EXPECT_THAT(all<double>(run["reports"], "time"), ElementsAre(1, 4, 5));
}

TEST_F(ReadRun, LeavesOutLinesThatAreNone) {
  const Json run =
      read("{\"step\": 5}\n\nnull\n[1]\n{\"loss\": 1}\n{\"step\": \"6\"}\n{\"step\": 7, \"exa");
  EXPECT_THAT(all(run["reports"], "step"), ElementsAre(5));
}

TEST_F(ReadRun, OfALongRunKeepsSomeReportsAndTheLast) {
  std::string metrics;
  for (int step = 1; step <= 2000; ++step) metrics += concat("{\"step\": ", step, "}\n");
  EXPECT_EQ(read(metrics)["reports"].size(), 2000U);
  const Json run = read(metrics + "{\"step\": 2001}\n");
  EXPECT_EQ(run["num_reports"], 2001);
  EXPECT_EQ(run["reports"].size(), 1001U);
  EXPECT_EQ(run["reports"].front()["step"], 1);
  EXPECT_EQ(run["reports"].back()["step"], 2001);
}

TEST_F(ReadRun, HasConfigurationAndSummary) {
  write("config.yaml", "train: {mode: sync}\nmodel:\n  top: [64, 32]\n");
  write("summary.json", R"({"step": 3})");
  const Json run = read_run(run_);
  EXPECT_EQ(run["config"].dump(), R"([["train.mode","sync"],["model.top","[64, 32]"]])");
  EXPECT_THAT(run["config_text"], HasSubstr("mode: sync"));
  EXPECT_EQ(run["summary"]["step"], 3);
  EXPECT_THAT(run["reports"], IsEmpty());
}

TEST_F(ReadRun, OfNothingIsAnErrorThatNamesIt) {
  EXPECT_THAT(error().second, HasSubstr("neither config.yaml nor metrics.jsonl"));
  remove_all(run_);
  EXPECT_EQ(error().first, ErrorCode::kIo);
  EXPECT_THAT(error().second, AllOf(HasSubstr(run_), HasSubstr("no such directory")));
}

TEST_F(ReadRun, DamageIsAnErrorThatNamesTheFile) {
  write("config.yaml", "a: 1\n");
  write("summary.json", "[]");
  EXPECT_EQ(error().first, ErrorCode::kCorrupt);
  EXPECT_THAT(error().second, HasSubstr("summary.json"));
  write("config.yaml", "a: [1\n");
  EXPECT_THAT(error().second, HasSubstr("config.yaml:"));
}

TEST_F(ReadRun, ThePageHoldsItsStringsAsJsonThatEndsNoElement) {
  write("config.yaml", "a: \"</script><script>alert(1)</script> & \\xff\"\n");
  const std::string page = report_page({run_});
  EXPECT_THAT(page, Not(HasSubstr("alert(1)<")));
  EXPECT_THAT(page, HasSubstr("\\u003c/script\\u003e\\u003cscript\\u003ealert(1)"));
  EXPECT_THAT(page, Not(HasSubstr("{{")));
}

TEST_F(ReadRun, RunsOfOneNameAreToldApartByTheirPaths) {
  const std::string other = directory_.path() + "/b/run-7";
  std::filesystem::create_directories(other);
  write("config.yaml", "a: 1\n");
  write_file_atomic(other + "/config.yaml", "a: 1\n");
  EXPECT_THAT(report_page({run_}), HasSubstr(R"("name":"run-7")"));
  const std::string page = report_page({run_, other});
  EXPECT_THAT(page, HasSubstr("\"name\":\"" + run_ + "\""));
  EXPECT_THAT(page, HasSubstr("\"name\":\"" + other + "\""));
}

}  // namespace
}  // namespace satrap::app
