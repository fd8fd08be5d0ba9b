#pragma once

#include <string_view>
#include <vector>

namespace satrap::prepare {

/// A YAML file of datasets/<set>/, as it was when the program was built.
struct ConfigurationFile {
  std::string_view set, name, text;
};

const std::vector<ConfigurationFile>& configuration_files();

}  // namespace satrap::prepare
