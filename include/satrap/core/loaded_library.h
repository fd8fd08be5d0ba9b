#pragma once

#include <string>

namespace satrap {

/// A library that the program opens when it first needs it, and the function that it exports.
struct LoadedLibrary {
  std::string file;        // beside the programs, in ../lib (CMAKE_BUILD_RPATH)
  std::string entry;       // name of the function
  std::string needed_for;  // of the message if it cannot be opened
  std::string remedy;
};

/// Opens the library, which stays open, and returns the address of its function. Its symbols are
/// local: it may carry its own version of what the program uses. Throws Error(kUnavailable) if it
/// cannot be opened.
void* open_library(const LoadedLibrary& library);

}  // namespace satrap
