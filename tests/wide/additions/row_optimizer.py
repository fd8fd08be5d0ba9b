"""sign: w -= lr * sign(g)."""

from places import Addition, NewFile, after, before

HEADER = "include/satrap/kernels/row_optimizer.h"
ADDITION = Addition("row optimizer", [
    after(HEADER, "kAdam, kFtrl", ", kSign", [
        ("///\n/// State: sgd none;", "///  sign            w -= lr * sign(g)\n///\n/// State: sgd and sign none;")]),
    after(HEADER, '    {"ftrl", 2, false, {"initial_accumulator", "beta", "l1", "l2"}},\n',
          '    {"sign", 0, false, {}},\n'),
    before("include/satrap/kernels/row_formulas.h",
           "  } else {\n    static_assert(kType == RowOptimizerType::kFtrl);", """\
  } else if constexpr (kType == RowOptimizerType::kSign) {
    w = std::fma(-s.lr, static_cast<float>((g > 0.0F) - (g < 0.0F)), w);
"""),
    NewFile("cuda/backend/backward_sign.cu", """\
#include "cuda/backend/backward_update.h"

namespace satrap::backend {

template void backward_update_of<RowOptimizerType::kSign>(const Grids&,
                                                          const BackwardUpdate&,
                                                          StreamRef);

}  // namespace satrap::backend
"""),
    after("src/job/table_config.cpp", '"torch.optim.SparseAdam; ftrl is FTRL-proximal',
          '; sign moves each weight by lr, "\n           "against the sign of its gradient'),
])
