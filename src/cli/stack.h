#pragma once

namespace satrap::cli {

/// Gives this thread, and those that are started later, room for what satrap and its libraries call
/// in each other, if the system's limit (`ulimit -s`) was lower. Throws Error(kUnavailable) if it
/// may not.
void require_stack();

}  // namespace satrap::cli
