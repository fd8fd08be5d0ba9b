#pragma once

namespace satrap::cli {

// What a process still says when there is nobody to report an error to, or no memory to do so.
// Neither allocates.

/// For std::set_new_handler. Writes `error: out of memory in thread 'NAME'` and ends the process
/// with status 1.
[[noreturn]] void end_without_memory();

/// For std::set_terminate: an exception has left a thread or a destructor. If it means that memory
/// or threads are lacking, writes a line `error: …` and ends the process with status 1; anything
/// else is a bug and aborts.
[[noreturn]] void end_unreported();

}  // namespace satrap::cli
