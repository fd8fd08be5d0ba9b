#include "src/app/job_arguments.h"

#include <filesystem>
#include <system_error>

#include <CLI/CLI.hpp>

#include "satrap/core/error.h"
#include "satrap/data/file_name.h"
#include "satrap/pipeline/load_job.h"

namespace satrap::app {
namespace {

/// A configuration has the ending .yaml or .yml, mostly; these are data.
void refuse_data(const std::string& config) {
  if (!data::is_data_name(config)) return;
  throw Error(
      ErrorCode::kInvalidConfig,
      concat("'", config, "' is data by its name, and CONFIG is a YAML file; `satrap init ", config,
             "` writes one, `satrap train ", config, " --label COLUMN` writes one and trains"));
}

}  // namespace

job::JobConfig JobArguments::load() const {
  refuse_data(config);
  return pipeline::load_job(config, overrides);
}

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
                  "The job, a YAML file (default: the one that the checkpoint was trained with), "
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
