#pragma once

#include <string>

namespace satrap {

/// Names the calling thread for debuggers, `top -H` and sanitizer reports. The kernel keeps 15
/// bytes; a longer name is cut.
void set_thread_name(const std::string& name);

}  // namespace satrap
