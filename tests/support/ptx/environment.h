#pragma once

#include <string>

#include "tests/support/ptx/program.h"

namespace ptx {

/// The PTX that launches of this test program run; exists while tests run.
Program& program();

/// Where its .ptx and .sass files lie: $SATRAP_PTX_FOLDER, or the build's.
std::string folder();

}  // namespace ptx
