#pragma once

#include "tests/support/ptx/program.h"

namespace ptx {

/// The PTX that launches of this test program run; exists while tests run.
Program& program();

}  // namespace ptx
