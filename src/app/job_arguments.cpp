#include "job_arguments.h"

#include <CLI/CLI.hpp>

namespace satrap::app {

void JobArguments::add_to(CLI::App& command) {
  command.add_option("CONFIG", config, "The job, a YAML file (see `satrap config explain`)")
      ->required()
      ->type_name("");
  command.add_option("OVERRIDES", overrides, "key.path=value ..., each overrides the file")
      ->type_name("");
}

}  // namespace satrap::app
