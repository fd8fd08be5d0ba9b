#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace satrap::cli {

/// The command chosen on the command line. Returns the exit status or throws.
using Action = std::function<int()>;

/// Runs a program: parses the command line with `program`, then runs the `chosen` action.
/// `prepare` adds options and commands. Only this function turns an exception into lines `error: …`
/// on stderr and an exit status.
int run_program(CLI::App& program,
                int argc,
                char** argv,
                const std::function<void(Action& chosen)>& prepare);

/// The same inside of another program: throws errors, and leaves the process's treatment of signals
/// as it is. `words`: those behind the program's name. What is wrong with them is a line on stderr
/// and the status 2, as in run_program.
int run_words(CLI::App& program,
              const std::vector<std::string>& words,
              const std::function<void(Action& chosen)>& prepare);

/// Ends the help of a command with a text, if there is one, and an example, which names the command
/// in full.
void end_help(CLI::App& command, const std::string& example, const std::string& text = "");

}  // namespace satrap::cli
