#pragma once

namespace satrap::dense {

/// Makes libtorch and its BLAS compute on the calling thread alone from now on: a setting per
/// thread; repeating it is cheap.
void use_one_thread();

}  // namespace satrap::dense
