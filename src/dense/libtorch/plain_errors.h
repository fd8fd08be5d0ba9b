#pragma once

#include <stdexcept>
#include <system_error>

#include <c10/util/Exception.h>
#include <torch/csrc/jit/frontend/error_report.h>

#include "src/dense/libtorch/one_thread.h"

namespace satrap::dense {

/// Runs what may fail in libtorch, on one thread: its errors without the stack of its C++ code, as
/// std::runtime_error; want of a device's memory as std::system_error.
template <class Run>
auto with_plain_errors(const Run& run) {
  use_one_thread();
  try {
    return run();
  } catch (const c10::OutOfMemoryError& error) {
    throw std::system_error(std::make_error_code(std::errc::not_enough_memory),
                            error.what_without_backtrace());
  } catch (const c10::Error& error) {
    throw std::runtime_error(error.what_without_backtrace());
  } catch (const torch::jit::ErrorReport& error) {  // of the source
    throw std::runtime_error(error.what());
  }
}

}  // namespace satrap::dense
