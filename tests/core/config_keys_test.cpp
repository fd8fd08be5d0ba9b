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

struct KeyedJob {
  std::string mode = "sync";
  bool is_fast = false;
  KeyedRow row;
  std::string preset = "plain";
  KeyedRow custom;
  std::map<std::string, KeyedRow> tables;
  std::vector<KeyedRow> columns = std::vector<KeyedRow>(2);
  void visit(ConfigVisitor& v) {
    v.field("mode", mode, "How.", {.one_of = {"sync", "async"}});
    v.field("is_fast", is_fast, "Whether.");
    v.section("row", row, "A row.");
    v.section_or_preset("schema", preset, custom, "A row, or its name.");
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
