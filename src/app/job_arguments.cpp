#include "job_arguments.h"

#include <filesystem>
#include <system_error>

#include <CLI/CLI.hpp>

namespace satrap::app {

void JobArguments::add_to(CLI::App& command) {
  command.add_option("CONFIG", config, "The job, a YAML file (see `satrap config explain`)")
      ->required()
      ->type_name("");
  command.add_option("OVERRIDES", overrides, "key.path=value ..., each overrides the file")
      ->type_name("");
}

void JobArguments::add_optional_to(CLI::App& command) {
  command
      .add_option("CONFIG", overrides,
                  "The job, a YAML file, by default the one with which the checkpoint was trained; "
                  "then key.path=value ..., each overrides the file")
      ->type_name("");
  command.parse_complete_callback([this] {
    const auto is_config = [](const std::string& word) {
      return word.find('=') == std::string::npos;
    };
    if (overrides.empty()) return;
    std::error_code unknown;
    if (!is_config(overrides.front()) &&
        !std::filesystem::is_regular_file(overrides.front(), unknown)) {
      return;
    }
    config = overrides.front();
    overrides.erase(overrides.begin());
  });
}

}  // namespace satrap::app
