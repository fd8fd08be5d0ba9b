#pragma once

#include <functional>
#include <string>

namespace satrap {

/// A library that the program opens when it first needs it, and the function that it exports.
struct LoadedLibrary {
  std::string file;        // where programs find it by their RPATH (cmake/Options.cmake)
  std::string entry;       // name of the function
  std::string needed_for;  // of the message if it cannot be opened
  std::string remedy;

  /// Opens what the library is linked with, for a loader that does not find it; returns why it
  /// could not, or "". Called before the library is opened, or only if it cannot be opened without.
  std::function<std::string()> open_needed = {};
  bool opens_needed_first = false;
};

/// Opens the library, which stays open, and returns the address of its function. Its symbols are
/// local: it may carry its own version of what the program uses. Throws Error(kUnavailable) if it
/// cannot be opened.
void* open_library(const LoadedLibrary& library);

/// Opens a library in the same way for others that are linked with it, which find it by its name.
/// Returns why it could not, or "".
std::string open_needed_library(const std::string& file);

}  // namespace satrap
