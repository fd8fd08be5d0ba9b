#include "src/dense/libtorch/one_thread.h"

#include <ATen/Parallel.h>

// Declared in OpenMP's <omp.h>, which not every compiler provides. Libraries below libtorch may set
// their own number of threads (Arm Compute Library does), whatever libtorch's setting; with no
// active level they get one.
extern "C" void omp_set_max_active_levels(int max_levels);

namespace satrap::dense {

void use_one_thread() {
  if (at::get_num_threads() == 1) return;
  at::set_num_threads(1);
  omp_set_max_active_levels(0);
}

}  // namespace satrap::dense
