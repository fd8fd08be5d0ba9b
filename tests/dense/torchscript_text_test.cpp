#include "src/dense/torchscript_text.h"

#include <gtest/gtest.h>

namespace satrap::dense {
namespace {

TEST(TorchScriptText, NamesValuesAndAttributes) {
  Layout layout;
  const ParameterId weight = layout.add_parameter("bottom.0.weight", {2, 3}, 1.0F);
  TorchScriptText script(layout);
  const std::string x = script.let(script.numeric() + " - 1");
  EXPECT_EQ(script.source(script.linear(x, weight, std::nullopt)),
            "def forward(self, numeric: Tensor, pooled: Tensor) -> Tensor:\n"
            "    x0 = numeric - 1\n"
            "    x1 = torch.linear(x0, self.bottom_0_weight)\n"
            "    return x1\n");
}

TEST(TorchScriptText, DropsOutAndTakesTheBatchsStatisticsInTrainingAlone) {
  Layout layout;
  const Script::BatchNormNumbers numbers{
      layout.add_parameter("weight", {2}, 0.0F), layout.add_parameter("bias", {2}, 0.0F),
      layout.add_buffer("mean", 2, 0.0F), layout.add_buffer("var", 2, 1.0F)};
  const auto source = [&](TorchScriptText::Form form) {
    TorchScriptText script(layout, form);
    const std::string x = script.drop(script.pooled(), 2, 0.5, 7);
    return script.source(script.drop(script.batch_norm(x, numbers), 2, 0.0, 8));
  };
  EXPECT_EQ(source(TorchScriptText::Form::kEvaluation),
            "def forward(self, numeric: Tensor, pooled: Tensor) -> Tensor:\n"
            "    x0 = torch.batch_norm(pooled, self.weight, self.bias, self.mean, self.var, False, "
            "0.1, 1e-5, False)\n"
            "    return x0\n");
  EXPECT_EQ(source(TorchScriptText::Form::kTraining),
            "def forward(self, numeric: Tensor, pooled: Tensor, factors: Tensor) -> Tensor:\n"
            "    x0 = pooled * factors[:, 0:2]\n"
            "    x1 = torch.batch_norm(x0, self.weight, self.bias, self.mean, self.var, True, 0.1, "
            "1e-5, False)\n"
            "    return x1\n");
}

TEST(TorchScriptText, AGateIsASoftmaxAndAWeightedSumOfExperts) {
  const Layout layout;
  TorchScriptText script(layout);
  const std::string experts = script.reshape(script.join({"a", "b"}, 1), {2, 3});
  const std::string gate = script.reshape(script.softmax("g"), {2, 1});
  EXPECT_EQ(script.source(script.sum(script.multiply(gate, experts), 1)),
            "def forward(self, numeric: Tensor, pooled: Tensor) -> Tensor:\n"
            "    x0 = torch.cat([a, b], 1)\n"
            "    x1 = x0.reshape([-1, 2, 3])\n"
            "    x2 = torch.softmax(g, -1)\n"
            "    x3 = x2.reshape([-1, 2, 1])\n"
            "    x4 = x3 * x1\n"
            "    x5 = torch.sum(x4, [1])\n"
            "    return x5\n");
}

}  // namespace
}  // namespace satrap::dense
