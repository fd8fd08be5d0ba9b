#include "satrap/ps/row_format.h"

#include <vector>

#include <gtest/gtest.h>

#include "satrap/ps/table.h"
#include "tests/ps/stored_weights.h"

namespace satrap::ps {
namespace {

TableSpec spec_of(WeightType weights, std::int64_t dim, RowOptimizerType optimizer) {
  TableSpec spec;
  spec.name = "user";
  spec.dim = dim;
  spec.weights = weights;
  spec.optimizer.type = optimizer;
  return spec;
}

TEST(RowFormat, WeightsTakeTheirBytesAndTheStateBeginsAtAWholeFloat) {
  const auto bytes = [](WeightType weights, std::int64_t dim) {
    return Table::bytes_of_row(spec_of(weights, dim, RowOptimizerType::kAdagrad));
  };
  EXPECT_EQ(bytes(WeightType::kFp32, 5), 16 + 20 + 20);
  EXPECT_EQ(bytes(WeightType::kBf16, 5), 16 + 12 + 20);
  EXPECT_EQ(bytes(WeightType::kFp16, 1), 16 + 4 + 4);
  EXPECT_EQ(bytes(WeightType::kFp16, 16), 16 + 32 + 64);
}

class RowFormats : public testing::TestWithParam<WeightType> {};
INSTANTIATE_TEST_SUITE_P(Types,
                         RowFormats,
                         testing::Values(WeightType::kFp32, WeightType::kBf16, WeightType::kFp16),
                         [](const auto& test) { return name_of(test.param); });

TEST_P(RowFormats, ANewRowIsItsInitialWeightsAsStoredAndTheStateThatFitsThem) {
  for (const std::int64_t dim : {1, 5, 16, 300}) {
    const TableSpec spec = spec_of(GetParam(), dim, RowOptimizerType::kFtrl);
    const Table table(spec, 9);
    const Key key = make_key(spec.id, 77);
    std::vector<std::byte> memory(static_cast<std::size_t>(table.row_bytes()));
    table.initialize_row(key, memory.data());
    std::vector<float> initial(static_cast<std::size_t>(dim)), weights(initial.size());
    spec.init.fill(RowInit::table_seed(9, "user"), key, initial);
    const std::vector<float> expected = stored(spec, 9, key, 0, initial);
    table.format().read_weights(memory.data(), weights.data());
    EXPECT_EQ(weights, expected);
    EXPECT_EQ(weights == initial, GetParam() == WeightType::kFp32);
    std::vector<float> state(2 * expected.size());
    spec.optimizer.initialize_state(expected.data(), state.data(), dim);
    const float* const actual = table.format().state_of(memory.data());
    EXPECT_EQ(std::vector(actual, actual + 2 * dim), state);
  }
}

TEST_P(RowFormats, AChangeIsMadeInFloatsAndStoredForItsStep) {
  const TableSpec spec = spec_of(GetParam(), 7, RowOptimizerType::kSgd);
  const Table table(spec, 9);
  const Key key = make_key(spec.id, 3);
  std::vector<std::byte> memory(static_cast<std::size_t>(table.row_bytes()));
  table.initialize_row(key, memory.data());
  std::vector<float> expected(7), scratch(7), weights(7);
  table.format().read_weights(memory.data(), expected.data());
  for (const std::int64_t step : {1, 2, 30}) {
    for (float& w : expected) w += 0.001F;
    expected = stored(spec, 9, key, step, expected);
    table.format().change(memory.data(), table.rounding_seed(step), scratch.data(),
                          [](float* w, float*) {
                            for (int d = 0; d < 7; ++d) w[d] += 0.001F;
                          });
    table.format().read_weights(memory.data(), weights.data());
    EXPECT_EQ(weights, expected) << "step " << step;
  }
}

}  // namespace
}  // namespace satrap::ps
