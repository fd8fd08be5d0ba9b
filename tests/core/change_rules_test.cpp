#include "satrap/core/change_rules.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace satrap {
namespace {

using testing::ElementsAre;
using testing::Pair;

struct Inner {
  std::string a, b;
  void visit(ConfigVisitor& v) {
    v.field("a", a, "");
    v.field("b", b, "", {.resume = impossible("b is a constant")});
  }
};

struct Outer {
  std::string own;
  Inner plain, with_rule;
  std::vector<Inner> list = {Inner(), Inner()};
  std::vector<Inner> empty;
  std::map<std::string, Inner> named = {{"x.y", Inner()}};
  void visit(ConfigVisitor& v) {
    v.field("own", own, "");
    v.section("plain", plain, "");
    v.section("ruled", with_rule, "", kSameTraining);
    v.list("list", list, "");
    v.list("empty", empty, "");
    v.named("named", named, "");
  }
};

/// Path and kind of each value, as config_values has them.
std::vector<std::pair<std::string, ChangeKind>> kinds_of(const Outer& config, ChangeRule outer) {
  const ChangeRules rules = change_rules(config, outer);
  std::vector<std::pair<std::string, ChangeKind>> kinds;
  for (const ConfigValue& value : config_values(dump_config(config), "test")) {
    kinds.emplace_back(value.path, rules.at(value.path).kind);
  }
  return kinds;
}

TEST(ChangeRules, AreThoseOfTheKeyOrOfTheInnermostSectionThatHasOne) {
  using enum ChangeKind;
  EXPECT_THAT(
      kinds_of({}, kOtherInput),
      ElementsAre(Pair("own", kInput), Pair("plain.a", kInput), Pair("plain.b", kImpossible),
                  Pair("ruled.a", kOutput), Pair("ruled.b", kImpossible), Pair("list.0.a", kInput),
                  Pair("list.0.b", kImpossible), Pair("list.1.a", kInput),
                  Pair("list.1.b", kImpossible), Pair("empty", kInput),
                  Pair("named.default.a", kInput), Pair("named.default.b", kImpossible),
                  Pair("named.x.y.a", kInput), Pair("named.x.y.b", kImpossible)));
  EXPECT_EQ(change_rules(Outer()).at("own").kind, kTraining);
  EXPECT_EQ(change_rules(Outer()).at("plain.b").reason, "b is a constant");
}

}  // namespace
}  // namespace satrap
