// Linked into tests of kernels: launches run the PTX that nvcc has emitted for them.
#include "tests/support/ptx/environment.h"

#include <cstdlib>
#include <memory>

#include <gtest/gtest.h>

namespace ptx {
namespace {

std::unique_ptr<Program> current;

class Environment : public testing::Environment {
 public:
  void SetUp() override {
    current = std::make_unique<Program>(folder());
    simt::set_interpreter([](const auto& launch, const void* kernel, const auto& arguments) {
      program().launch(launch, kernel, arguments);
    });
  }

  /// A whole run of the tests must have launched every kernel.
  void TearDown() override {
    simt::set_interpreter({});
    const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
    if (current == nullptr || tests.successful_test_count() < tests.total_test_count()) return;
    for (const std::string& kernel : program().never_launched()) {
      ADD_FAILURE() << "no test launches " << kernel;
    }
  }
};

const testing::Environment* const environment = testing::AddGlobalTestEnvironment(new Environment);

}  // namespace

Program& program() { return *current; }

std::string folder() {
  const char* given = std::getenv("SATRAP_PTX_FOLDER");
  return given != nullptr ? given : SATRAP_PTX_FOLDER;
}

}  // namespace ptx
