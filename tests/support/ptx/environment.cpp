// Linked into tests of kernels: launches run the PTX that nvcc has emitted for them.
#include <cstdlib>
#include <optional>

#include <gtest/gtest.h>

#include "tests/support/ptx/program.h"

namespace ptx {
namespace {

/// $SATRAP_PTX_FOLDER holds the PTX in place of the build's.
std::string folder() {
  const char* given = std::getenv("SATRAP_PTX_FOLDER");
  return given != nullptr ? given : SATRAP_PTX_FOLDER;
}

class Environment : public testing::Environment {
 public:
  void SetUp() override {
    program_.emplace(folder());
    simt::set_interpreter([this](const auto& launch, const void* kernel, const auto& arguments) {
      program_->launch(launch, kernel, arguments);
    });
  }

  /// A whole run of the tests must have launched every kernel.
  void TearDown() override {
    simt::set_interpreter({});
    const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
    if (tests.successful_test_count() < tests.total_test_count()) return;
    for (const std::string& kernel : program_->never_launched()) {
      ADD_FAILURE() << "no test launches " << kernel;
    }
  }

 private:
  std::optional<Program> program_;
};

const testing::Environment* const environment = testing::AddGlobalTestEnvironment(new Environment);

}  // namespace
}  // namespace ptx
