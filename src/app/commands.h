#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace satrap::app {

/// What the command line asked for. Returns the exit status or throws.
using Action = std::function<int()>;

/// Each adds one command, its options and its help to `program`; parsing a command line that names
/// the command then sets `chosen`, which is run once parsing has succeeded. `chosen` must live as
/// long as `program`.
void add_train_command(CLI::App& program, Action& chosen);
void add_eval_command(CLI::App& program, Action& chosen);
void add_predict_command(CLI::App& program, Action& chosen);
void add_export_command(CLI::App& program, Action& chosen);
void add_data_commands(CLI::App& program, Action& chosen);
void add_config_commands(CLI::App& program, Action& chosen);
void add_checkpoint_commands(CLI::App& program, Action& chosen);
void add_report_command(CLI::App& program, Action& chosen);
void add_ps_command(CLI::App& program, Action& chosen);
void add_store_command(CLI::App& program, Action& chosen);
void add_doctor_command(CLI::App& program, Action& chosen);

/// The arguments of `satrap ps`, for a program that does nothing else.
void add_ps_arguments(CLI::App& command, Action& chosen);

}  // namespace satrap::app
