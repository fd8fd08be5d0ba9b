#pragma once

#include "satrap/cli/program.h"

namespace satrap::cli {

/// Each adds one command, its options and its help to `program`; parsing a command line that names
/// the command then sets `chosen`. `chosen` must live as long as `program`.
void add_ps_command(CLI::App& program, Action& chosen);
void add_loader_command(CLI::App& program, Action& chosen);
void add_store_command(CLI::App& program, Action& chosen);

/// Adds the arguments of `satrap ps`, for a program that does nothing else.
void add_ps_arguments(CLI::App& command, Action& chosen);

}  // namespace satrap::cli
