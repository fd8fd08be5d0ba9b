#pragma once

#include "satrap/app/host_program.h"
#include "satrap/cli/program.h"

namespace CLI {
class App;
}

namespace satrap::app {

/// Each adds one command, its options and its help to `program`; parsing a command line that names
/// the command then sets `chosen`, which runs once parsing has succeeded. `chosen` and
/// `host` must live as long as `program`.
void add_init_command(CLI::App& program, cli::Action& chosen);
void add_train_command(CLI::App& program, const HostProgram& host, cli::Action& chosen);
void add_eval_command(CLI::App& program, const HostProgram& host, cli::Action& chosen);
void add_predict_command(CLI::App& program, const HostProgram& host, cli::Action& chosen);
void add_export_command(CLI::App& program, const HostProgram& host, cli::Action& chosen);
void add_data_commands(CLI::App& program, cli::Action& chosen);
void add_config_commands(CLI::App& program, cli::Action& chosen);
void add_checkpoint_commands(CLI::App& program, cli::Action& chosen);
void add_report_command(CLI::App& program, cli::Action& chosen);
void add_doctor_command(CLI::App& program, cli::Action& chosen);
void add_completion_command(CLI::App& program, cli::Action& chosen);

}  // namespace satrap::app
