#pragma once

namespace satrap::cli {

/// The `satrap-ps` program, a parameter-server shard; the same as `satrap ps`. Uses no libtorch.
/// Exit statuses, messages and signals are those of app::main.
int ps_main(int argc, char** argv);

}  // namespace satrap::cli
