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

}  // namespace
}  // namespace satrap
