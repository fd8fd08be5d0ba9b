#include "src/trainer/constant_inputs.h"

#include <gtest/gtest.h>

namespace satrap::trainer {
namespace {

using Names = std::vector<std::string>;

/// Numbers a and b, features f and g.
data::Schema schema_of_four() {
  data::Schema schema;
  for (const char* const name : {"a", "b"}) {
    data::Schema::NumericInput input;
    input.output = schema.num_numeric_outputs();
    input.config.name = name;
    schema.numeric_inputs.push_back(input);
    schema.numeric_names.emplace_back(name);
  }
  schema.features = {{"f"}, {"g"}};
  return schema;
}

/// Two examples; g is a bag of two ids in each.
data::Batch batch_of(std::vector<float> numeric, std::vector<std::uint64_t> ids) {
  data::Batch batch;
  batch.num_examples = batch.num_features = batch.num_numeric = 2;
  batch.numeric = std::move(numeric);
  batch.offsets = {0, 1, 2, 4, 6};
  batch.ids = std::move(ids);
  return batch;
}

TEST(ConstantInputs, AreThoseThatNeverChange) {
  ConstantInputs inputs(schema_of_four());
  inputs.add(batch_of({1, 5, 1, 6}, {7, 7, 8, 9, 8, 9}));
  EXPECT_EQ(inputs.names(), (Names{"a", "f", "g"}));
  inputs.add(batch_of({1, 5, 1, 5}, {7, 7, 8, 9, 8, 10}));
  EXPECT_EQ(inputs.names(), (Names{"a", "f"})) << "b does not become constant again";
  inputs.add(batch_of({2, 5, 2, 5}, {7, 6, 8, 9, 8, 9}));
  EXPECT_EQ(inputs.names(), Names{});
}

TEST(ConstantInputs, AFeatureThatIsSometimesEmptyChanges) {
  ConstantInputs inputs(schema_of_four());
  data::Batch batch = batch_of({1, 1, 1, 1}, {7, 8, 9, 8, 9});
  batch.offsets = {0, 1, 1, 3, 5};
  inputs.add(batch);
  EXPECT_EQ(inputs.names(), (Names{"a", "b", "g"}));
}

TEST(ConstantInputs, WithoutExamplesThereAreNone) {
  ConstantInputs inputs(schema_of_four());
  inputs.add({});
  EXPECT_EQ(inputs.names(), Names{});
}

}  // namespace
}  // namespace satrap::trainer
