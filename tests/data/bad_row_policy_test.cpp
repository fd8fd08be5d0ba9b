#include "src/data/rows/bad_row_policy.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"

namespace satrap::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class BadRowPolicyTest : public ::testing::Test {
 protected:
  BadRowPolicy policy(const BadRowLimit& limit, bool stop = false) {
    return {stop, limit, [this](const std::string& line) { log.push_back(line); }};
  }
  static BadRows bad(std::int64_t count) {
    BadRows rows;
    rows.count = count;
    if (count > 0) rows.messages.push_back("f:3: no number");
    return rows;
  }
  static std::string error_of(const std::function<void()>& body) {
    try {
      body();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidData);
      return error.what();
    }
    return "";
  }

 public:
  std::vector<std::string> log;
};

TEST_F(BadRowPolicyTest, CountsByReason) {
  BadRowPolicy rows = policy({});
  BadRows some = bad(3);
  some.reasons = {{"column 'n': expected a number", 2}, {"expected 4 columns", 1}};
  rows.add(some, 10);
  rows.add(some, 10);
  const std::map<std::string, std::int64_t> expected = {{"column 'n': expected a number", 4},
                                                        {"expected 4 columns", 2}};
  EXPECT_EQ(rows.reasons(), expected);
}

TEST_F(BadRowPolicyTest, AShareCountsAtTheEndOfAPassHoweverFewRowsThereWere) {
  for (const std::int64_t num_bad : {0, 1, 10, 11, 100}) {
    BadRowPolicy rows = policy({.share = 0.1});
    rows.add(bad(num_bad), 100 - num_bad);
    const std::string error = error_of([&] { rows.end_pass(true); });
    if (num_bad <= 10) {
      EXPECT_EQ(error, "") << num_bad;
    } else {
      EXPECT_THAT(error,
                  HasSubstr(std::to_string(num_bad) + " of 100 rows (" + std::to_string(num_bad) +
                            ".0 %) cannot be read, more than "
                            "data.max_bad_rows = 10% allows; the first: f:3: no number"));
    }
  }
}

TEST_F(BadRowPolicyTest, AShareEndsAPassOnceThereAreEnoughRows) {
  BadRowPolicy rows = policy({.share = 0.1});
  rows.add(bad(5'000), 0);
  rows.add(bad(0), 4'999);
  EXPECT_THAT(error_of([&] { rows.add(bad(1), 0); }), HasSubstr("5001 of 10000 rows (50.0 %)"));
}

TEST_F(BadRowPolicyTest, AShareIsOfAllPasses) {
  BadRowPolicy rows = policy({.share = 0.1});
  rows.add(bad(9), 91);
  rows.end_pass(true);
  rows.add(bad(12), 88);
  EXPECT_THAT(error_of([&] { rows.end_pass(true); }), HasSubstr("21 of 200 rows (10.5 %)"));
}

TEST_F(BadRowPolicyTest, ANumberEndsAPassAtOnce) {
  BadRowPolicy rows = policy({.rows = 3});
  rows.add(bad(3), 0);
  EXPECT_THAT(error_of([&] { rows.add(bad(1), 1'000'000); }),
              HasSubstr("more than data.max_bad_rows = 3 bad rows; the first: f:3: no number"));
}

TEST_F(BadRowPolicyTest, WithoutALimitAllMayBeBad) {
  BadRowPolicy rows = policy({});
  rows.add(bad(100'000), 0);
  rows.end_pass(true);
  EXPECT_EQ(rows.count(), 100'000);
}

TEST_F(BadRowPolicyTest, MoreThanOnePercentIsAWarningOnce) {
  BadRowPolicy few = policy({.share = 0.1});
  few.add(bad(1), 99);
  few.end_pass(true);
  few.end_pass(true);
  EXPECT_THAT(log, ElementsAre("bad row skipped: f:3: no number"));
  log.clear();
  BadRowPolicy many = policy({.share = 0.1});
  many.add(bad(3), 197);
  many.end_pass(true);
  many.add(bad(3), 197);
  many.end_pass(true);
  EXPECT_THAT(log, testing::Contains("3 of 200 rows (1.5 %) could not be read; the "
                                     "first: f:3: no number")
                       .Times(1));
  EXPECT_THAT(log, Not(testing::Contains(HasSubstr("400 rows"))));
}

TEST_F(BadRowPolicyTest, TheRestOfAResumedPassIsNotJudgedUnlessItIsLong) {
  BadRowPolicy rows = policy({.share = 0.1});
  rows.add(bad(6), 4);
  rows.end_pass(false);
  EXPECT_THAT(log, ElementsAre("bad row skipped: f:3: no number"));
  rows.add(bad(0), 40);  // the next epoch, whole
  EXPECT_THAT(error_of([&] { rows.end_pass(true); }), HasSubstr("6 of 50 rows (12.0 %)"));
  BadRowPolicy more = policy({.share = 0.1});
  EXPECT_THAT(error_of([&] {
                more.add(bad(2'000), 8'000);
                more.end_pass(false);
              }),
              HasSubstr("2000 of 10000 rows"));
}

TEST_F(BadRowPolicyTest, AnEmptyPassIsNeitherGoodNorBad) {
  BadRowPolicy rows = policy({.share = 0.0});
  rows.end_pass(true);
  EXPECT_THAT(log, IsEmpty());
}

TEST_F(BadRowPolicyTest, TheFirstMayEndReading) {
  BadRowPolicy rows = policy({.share = 0.5}, true);
  EXPECT_EQ(error_of([&] { rows.add(bad(1), 1000); }), "f:3: no number");
}

TEST(BadRowLimit, IsANumberOrAShare) {
  DataConfig config;
  EXPECT_EQ(config.bad_row_limit().share, 0.1);
  config.max_bad_rows = "0";
  EXPECT_EQ(config.bad_row_limit().rows, 0);
  EXPECT_EQ(config.bad_row_limit().share, 0.0);
  config.max_bad_rows = "20";
  EXPECT_EQ(config.bad_row_limit().rows, 20);
  for (const char* text : {"", "-1", "some", "1.5", "101%", "%"}) {
    config.max_bad_rows = text;
    EXPECT_THROW(config.bad_row_limit(), Error) << text;
  }
}

}  // namespace
}  // namespace satrap::data
