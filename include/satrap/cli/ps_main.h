#pragma once

namespace satrap::cli {

/// The `satrap-ps` program, a parameter-server shard; the same as `satrap ps`. Uses no libtorch. As
/// app::main for exit statuses, messages and signals.
int ps_main(int argc, char** argv);

}  // namespace satrap::cli
