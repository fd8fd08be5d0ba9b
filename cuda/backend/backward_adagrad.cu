#include "cuda/backend/backward_update.h"

namespace satrap::backend {

template void backward_update_of<RowOptimizerType::kAdagrad>(const Grids&,
                                                             const BackwardUpdate&,
                                                             StreamRef);

}  // namespace satrap::backend
