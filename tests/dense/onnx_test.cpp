#include "src/dense/onnx.h"

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "src/dense/onnx_graph.h"
#include "tests/dense/network_fixture.h"

namespace satrap::dense {
namespace {

// The encoding of protobuf, as its specification has it: what is below 128 takes one byte.
std::string number_field(int field, std::int64_t value) {
  return {static_cast<char>(field << 3), static_cast<char>(value)};
}

std::string bytes_field(int field, const std::string& value) {
  return std::string{static_cast<char>((field << 3) | 2), static_cast<char>(value.size())} + value;
}

std::string matrix_message(const std::string& name, std::int64_t columns) {
  const std::string shape =
      bytes_field(1, bytes_field(2, "rows")) + bytes_field(1, number_field(1, columns));
  return bytes_field(1, name) +
         bytes_field(2, bytes_field(1, number_field(1, 1) + bytes_field(2, shape)));
}

class Onnx : public testing::Test {
 protected:
  void SetUp() override {
    try {
      onnx_library();
    } catch (const Error& error) {
      GTEST_SKIP() << "a build without protobuf: " << error.what();
    }
  }
};

TEST_F(Onnx, AFileIsWhatTheFormatSays) {
  const OnnxGraph graph{
      .inputs = {{"x", 2}},
      .outputs = {{"y", 3}},
      .nodes = {{"Op", {"x", "c"}, "y", {{"axis", std::int64_t{5}}, {"eps", 0.5F}}}},
      .initializers = {{"c", {2}, std::vector<std::int64_t>{7, 9}}}};
  const std::string eps = {0x15, 0, 0, 0, 0x3F};                 // field 2 in 32 bits
  const std::string types[] = {{'\xA0', 1, 2}, {'\xA0', 1, 1}};  // field 20: INT, FLOAT
  const std::string node = bytes_field(1, "x") + bytes_field(1, "c") + bytes_field(2, "y") +
                           bytes_field(3, "y") + bytes_field(4, "Op") +
                           bytes_field(5, bytes_field(1, "axis") + number_field(3, 5) + types[0]) +
                           bytes_field(5, bytes_field(1, "eps") + eps + types[1]);
  std::string raw(16, '\0');
  raw[0] = 7;
  raw[8] = 9;
  const std::string tensor =
      number_field(1, 2) + number_field(2, 7) + bytes_field(8, "c") + bytes_field(9, raw);
  const std::string content = bytes_field(1, node) + bytes_field(2, "dense") +
                              bytes_field(5, tensor) + bytes_field(11, matrix_message("x", 2)) +
                              bytes_field(12, matrix_message("y", 3));
  std::string length = {static_cast<char>(content.size() % 128 + 128),
                        static_cast<char>(content.size() / 128)};
  EXPECT_EQ(onnx_library().write(graph),
            number_field(1, 7) + bytes_field(2, "satrap") + bytes_field(3, SATRAP_VERSION) +
                std::string{(7 << 3) | 2} + length + content +
                bytes_field(8, bytes_field(1, "") + number_field(2, 13)));
}

TEST_F(Onnx, BothEnginesWriteTheSameFileOfEachModel) {
  ThreadPool pool(1);
  for (const ModelCase& c : all_models()) {
    SCOPED_TRACE(c.name);
    ModelCase by_graph = c;
    by_graph.model.engine = job::Engine::kGraph;
    const auto native = make_network(c, pool), graph = make_network(by_graph, pool);
    const std::string file = native->to_onnx();
    EXPECT_GT(file.size(), sizeof(float) * static_cast<std::size_t>(native->num_parameters()));
    EXPECT_EQ(file, graph->to_onnx());
  }
}

TEST_F(Onnx, ANetworkOfMoreThanTwoGigabytesIsRefused) {
  Layout layout;
  const ModelCase c = model_named("logistic");
  const auto model = make_model(c.model, c.shape, layout);
  layout.add_parameter("large", {500'000'000}, 0.0F);
  try {
    to_onnx(*model, c.shape, layout, {}, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
    EXPECT_NE(std::string(error.what()).find("holds 2 GB"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace satrap::dense
