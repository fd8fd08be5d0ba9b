#include "satrap/core/torch_folder.h"

#include <fstream>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "tests/support/temporary_directory.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class TorchFolder : public ::testing::Test {
  TemporaryDirectory directory_;  // before what is in it

 protected:
  fs::path path(const std::string& name) const { return directory_.path() + "/" + name; }

  void write(const std::string& name, const std::string& text) {
    fs::create_directories(path(name).parent_path());
    std::ofstream(path(name)) << text;
  }

  /// A package as pip installs it; returns its folder.
  fs::path install(const std::string& packages, const std::string& version) {
    write(packages + "/torch/lib/libtorch_cpu.so", "");
    write(packages + "/torch/version.py",
          "from typing import Optional\n\n__all__ = ['__version__']\n__version__ = '" + version +
              "'\n");
    return path(packages + "/torch");
  }

  fs::path find() {
    return find_torch_folder("2.11.0", program_, [this](const char* name) {
      const auto found = variables_.find(name);
      return found == variables_.end() ? "" : found->second;
    });
  }

  std::string message() {
    try {
      ADD_FAILURE() << "found " << find();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
      return error.what();
    }
    return "";
  }

  fs::path program_ = path("prefix/bin/satrap");
  std::map<std::string, std::string> variables_{{"HOME", path("home")}, {"PATH", "/nowhere:bin"}};
};

TEST_F(TorchFolder, ThatOfTheVariableComesFirst) {
  install("venv/lib/python3.11/site-packages", "2.11.0");
  variables_["VIRTUAL_ENV"] = path("venv");
  variables_["SATRAP_TORCH_DIR"] = install("elsewhere", "2.11.0+cpu");
  EXPECT_EQ(find(), path("elsewhere/torch"));
}

TEST_F(TorchFolder, AWrongVariableIsAnErrorThoughThereIsAnother) {
  install("venv/lib/python3.11/site-packages", "2.11.0");
  variables_["VIRTUAL_ENV"] = path("venv");
  variables_["SATRAP_TORCH_DIR"] = path("nowhere");
  EXPECT_THAT(message(), HasSubstr("nowhere has no lib/libtorch_cpu.so; it names the folder of "
                                   "PyTorch 2.11.0"));
  variables_["SATRAP_TORCH_DIR"] = install("old", "2.9.1+cu126");
  EXPECT_THAT(message(), HasSubstr("old/torch is version 2.9.1; "));
}

TEST_F(TorchFolder, AWheelFindsTheOneBesideIt) {
  const fs::path torch = install("venv/lib/python3.12/site-packages", "2.11.0+cu130");
  program_ = torch.parent_path() / "satrap/bin/satrap";
  EXPECT_EQ(find(), torch);
}

TEST_F(TorchFolder, PythonsOfTheEnvironmentInOrder) {
  const fs::path user = install("home/.local/lib/python3.13/site-packages", "2.11.0");
  EXPECT_EQ(find(), user);

  const fs::path on_path = install("usr/lib/python3/dist-packages", "2.11.0");
  variables_["PATH"] = "/nowhere:" + path("usr/bin").string();
  EXPECT_EQ(find(), user) << "a folder without python3";
  write("usr/bin/python3", "");
  EXPECT_EQ(find(), on_path);

  const fs::path conda = install("conda/lib/python3.12/site-packages", "2.11.0");
  variables_["CONDA_PREFIX"] = path("conda");
  EXPECT_EQ(find(), conda);

  const fs::path active = install("venv/lib/python3.11/site-packages", "2.11.0");
  variables_["VIRTUAL_ENV"] = path("venv");
  EXPECT_EQ(find(), active);
}

TEST_F(TorchFolder, AnotherVersionIsPassedOver) {
  install("venv/lib/python3.11/site-packages", "2.11.1");
  const fs::path right = install("venv/lib/python3.12/site-packages", "2.11.0");
  variables_["VIRTUAL_ENV"] = path("venv");
  EXPECT_EQ(find(), right);
}

TEST_F(TorchFolder, TheErrorSaysWhatIsThereAndWhatToDo) {
  install("venv/lib/python3.11/site-packages", "2.12.0");
  write("venv/lib/python3.12/site-packages/torch/lib/libtorch_cpu.so", "");
  variables_["VIRTUAL_ENV"] = path("venv");
  const std::string said = message();
  EXPECT_THAT(said, HasSubstr("no PyTorch 2.11.0 is found, "));
  EXPECT_THAT(said, HasSubstr("python3.11/site-packages/torch is version 2.12.0, "));
  EXPECT_THAT(said, HasSubstr("python3.12/site-packages/torch has no version.py"));
  EXPECT_THAT(said, HasSubstr("`pip install torch==2.11.0`"));
  EXPECT_THAT(said, HasSubstr("SATRAP_TORCH_DIR"));
}

TEST_F(TorchFolder, NothingAtAll) {
  variables_.clear();
  program_.clear();
  try {
    EXPECT_EQ(find().string().substr(0, 11), "/usr/local/") << "this machine's own";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no PyTorch 2.11.0 is found"));
  }
}

}  // namespace
}  // namespace satrap
