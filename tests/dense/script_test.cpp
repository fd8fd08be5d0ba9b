#include "src/dense/script.h"

#include <gtest/gtest.h>

namespace satrap::dense {
namespace {

TEST(Script, NamesValuesAndAttributes) {
  Layout layout;
  const ParameterId weight = layout.add_parameter("bottom.0.weight", {2, 3}, 1.0F);
  const BufferId mean = layout.add_buffer("bottom.0.running_mean", 2, 0.0F);
  Script script(layout);
  const std::string x = script.let(script.numeric() + " - " + script.buffer(mean));
  const std::string y = script.let("torch.linear(" + x + ", " + script.parameter(weight) + ")");
  EXPECT_EQ(script.source(y),
            "def forward(self, numeric: Tensor, pooled: Tensor) -> Tensor:\n"
            "    x0 = numeric - self.bottom_0_running_mean\n"
            "    x1 = torch.linear(x0, self.bottom_0_weight)\n"
            "    return x1\n");
}

}  // namespace
}  // namespace satrap::dense
