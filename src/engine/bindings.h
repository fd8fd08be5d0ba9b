#pragma once

#include <nanobind/nanobind.h>

namespace satrap::engine {

/// What satrap.fit and satrap.Model call.
void bind_models(nanobind::module_& m);

}  // namespace satrap::engine
