#include "cuda/backend/backward_update.h"

namespace satrap::backend {

template void backward_update_of<RowOptimizerType::kFtrl>(const Grids&,
                                                          const UpdateArguments&,
                                                          const PlanView&,
                                                          FloatType,
                                                          const void*,
                                                          StreamRef);

}  // namespace satrap::backend
