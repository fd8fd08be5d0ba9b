#include "cuda/backend/libtorch_order.h"

namespace satrap::backend {

int libtorch_gpu(int number) { return number; }

void run_in_order(StreamRef, std::function<void()> compute) { compute(); }

}  // namespace satrap::backend
