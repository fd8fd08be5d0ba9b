#include "satrap/core/loaded_library.h"

#include <string>

#include <gtest/gtest.h>

#include "satrap/core/error.h"

namespace satrap {
namespace {

TEST(LoadedLibrary, GivesTheFunction) {
  void* const entry = open_library({"libm.so.6", "cos", "cosines", "install libc"});
  EXPECT_EQ(reinterpret_cast<double (*)(double)>(entry)(0.0), 1.0);
}

std::string refusal(const LoadedLibrary& library) {
  try {
    open_library(library);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    return error.what();
  }
  return "";
}

TEST(LoadedLibrary, SaysWhatIsMissing) {
  EXPECT_EQ(refusal({"libnowhere.so", "f", "reading tea leaves", "build it"}),
            "libnowhere.so, which is needed for reading tea leaves, cannot be opened: "
            "libnowhere.so: cannot open shared object file: No such file or directory; build it");
  EXPECT_NE(refusal({"libm.so.6", "no_such_function", "it", "build it"}).find("no_such_function"),
            std::string::npos);
}

TEST(LoadedLibrary, WhatItNeedsIsOpenedFirstOrIfItCannotBeOpenedAlone) {
  int num_calls = 0;
  LoadedLibrary library{"libm.so.6", "cos", "cosines", "install libc"};
  library.open_needed = [&] { return ++num_calls, std::string(); };
  open_library(library);
  EXPECT_EQ(num_calls, 0);
  library.opens_needed_first = true;
  open_library(library);
  EXPECT_EQ(num_calls, 1);
  library.open_needed = [] { return open_needed_library("libneeded.so"); };
  EXPECT_EQ(refusal(library).substr(0, 74),
            "libm.so.6, which is needed for cosines, cannot be opened: libneeded.so: ca");
  library.opens_needed_first = false;
  EXPECT_EQ(refusal(library), "") << "it is there already";
}

}  // namespace
}  // namespace satrap
