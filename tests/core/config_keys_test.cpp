#include "satrap/core/config_keys.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace satrap {
namespace {

struct KeyedRow {
  std::int64_t dim = 4;
  void visit(ConfigVisitor& v) { v.field("dim", dim, "Length."); }
};

enum class KeyedMode { kSync, kAsync };
constexpr Choice<KeyedMode> kKeyedModes[] = {{"sync", KeyedMode::kSync},
                                             {"async", KeyedMode::kAsync}};

struct KeyedJob {
  KeyedMode mode = KeyedMode::kSync;
  bool is_fast = false;
  KeyedRow row;
  std::string preset = "plain";
  KeyedRow custom;
  std::map<std::string, KeyedRow> tables;
  std::vector<KeyedRow> columns = std::vector<KeyedRow>(2);
  void visit(ConfigVisitor& v) {
    v.choice("mode", mode, kKeyedModes, "How.");
    v.field("is_fast", is_fast, "Whether.");
    v.section("row", row, "A row.");
    v.section("schema", custom, "A row, or its name.", {}, &preset);
    v.named("tables", tables, "Rows by name.");
    v.list("columns", columns, "Rows.");
  }
};

TEST(ConfigKeys, AreThoseOfValuesWithTheirChoices) {
  const std::vector<ConfigKey> expected = {
      {"mode", {"sync", "async"}}, {"is_fast", {"true", "false"}}, {"row.dim", {}}, {"schema", {}},
      {"schema.dim", {}},          {"tables.default.dim", {}}};
  EXPECT_EQ(config_keys<KeyedJob>(), expected);
}

}  // namespace
}  // namespace satrap
