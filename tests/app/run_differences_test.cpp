#include "src/app/run_differences.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "satrap/core/config.h"

namespace satrap::app {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using Json = nlohmann::ordered_json;

Json configured(const std::string& yaml) {
  Json config = Json::array();
  for (const ConfigValue& value : config_values(yaml, "test")) {
    config.push_back({value.path, value.text});
  }
  return {{"config", config}};
}

std::string features(const std::vector<std::string>& names) {
  std::string yaml = "features:\n";
  for (const std::string& name : names) yaml += "  - {name: " + name + ", type: int}\n";
  return yaml;
}

TEST(ConfigDifferences, AreTheKeysInWhichNotAllAgree) {
  EXPECT_THAT(config_differences({configured("run_dir: a\nlr: 1\nseed: 7"),
                                  configured("run_dir: b\nlr: 2\nseed: 7"),
                                  configured("run_dir: c\nlr: 1\nseed: 7\nnew: x")}),
              ElementsAre(ElementsAre(Pair("lr", "1")), ElementsAre(Pair("lr", "2")),
                          ElementsAre(Pair("lr", "1"), Pair("new", "x"))));
}

TEST(ConfigDifferences, AFeatureThatIsMissingIsOneDifference) {
  const auto differences =
      config_differences({configured(features({"user", "city", "item", "hour"})),
                          configured(features({"user", "item", "hour"}))});
  EXPECT_THAT(differences, ElementsAre(ElementsAre(Pair("features", "+city")),
                                       ElementsAre(Pair("features", "-city"))));
}

TEST(ConfigDifferences, OfEachRunAreWhatItHasAndWhatItLacks) {
  EXPECT_THAT(config_differences(
                  {configured(features({"user", "city"})), configured(features({"user", "age"}))}),
              ElementsAre(ElementsAre(Pair("features", "+city -age")),
                          ElementsAre(Pair("features", "+age -city"))));
}

TEST(ConfigDifferences, TheOrderOfFeaturesIsNone) {
  EXPECT_THAT(
      config_differences({configured(features({"a", "b"})), configured(features({"b", "a"}))}),
      ElementsAre(IsEmpty(), IsEmpty()));
}

TEST(ConfigDifferences, OfAFeatureThatAllHaveAreItsKeys) {
  EXPECT_THAT(
      config_differences({configured("f: [{name: x, type: int}, {name: y, type: int}]"),
                          configured("f: [{name: y, type: hex}, {name: x, type: int}]")}),
      ElementsAre(ElementsAre(Pair("f.y.type", "int")), ElementsAre(Pair("f.y.type", "hex"))));
}

TEST(ConfigDifferences, OfManyFeaturesSomeAreNamed) {
  std::vector<std::string> names;
  for (int i = 10; i < 40; ++i) names.push_back("f" + std::to_string(i));
  EXPECT_THAT(config_differences({configured(features(names)), configured(features({"g"}))})[0],
              ElementsAre(Pair("features", "+f10 +f11 +f12 +f13 +f14 +f15 +f16 +f17 and 23 more")));
}

TEST(SettingsByName, AnElementIsCalledByItsNameOrItsColumn) {
  EXPECT_THAT(
      settings_by_name(configured("f: [{name: x, column: c}, {name: '', column: y}, {lr: 1}]")),
      ElementsAre(Pair("f.x.name", "x"), Pair("f.x.column", "c"), Pair("f.y.name", ""),
                  Pair("f.y.column", "y"), Pair("f.2.lr", "1")));
}

TEST(SettingsByName, TheSecondOfANameKeepsItsNumber) {
  const Settings settings = settings_by_name(configured("f: [{name: x, lr: 1}, {name: x, lr: 2}]"));
  EXPECT_THAT(settings, Contains(Pair("f.x.lr", "1")));
  EXPECT_THAT(settings, Contains(Pair("f.1.lr", "2")));
}

TEST(SettingsByName, NamesMayHavePointsAndBeNumbers) {
  const Settings settings =
      settings_by_name(configured("f: [{name: a.b, lr: 1}, {name: '0', lr: 2}]"));
  EXPECT_THAT(settings, Contains(Pair("f.a.b.lr", "1")));
  EXPECT_THAT(settings, Contains(Pair("f.0.lr", "2")));
}

}  // namespace
}  // namespace satrap::app
