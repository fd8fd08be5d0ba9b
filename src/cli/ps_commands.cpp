#include "satrap/cli/ps_commands.h"

#include <memory>
#include <new>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "satrap/cli/output.h"
#include "satrap/cli/program.h"
#include "satrap/cli/stop_signals.h"
#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/core/resource.h"
#include "satrap/net/net_error.h"
#include "satrap/net/tcp_rendezvous.h"
#include "satrap/ps/shard_server.h"
#include "src/cli/last_words.h"
#include "src/cli/loader.h"
#include "src/cli/shard.h"

namespace satrap::cli {
namespace {

struct PsArguments {
  std::string config;
  std::vector<std::string> overrides;
  ShardOptions options;
};

/// A shard that cannot store its rows is useless, so it ends when any allocation by `new` fails.
/// Large blocks, of rows and messages, are allocated differently; their failure is an error of the
/// request.
int run_shard(const PsArguments& arguments) {
  std::set_new_handler(end_without_memory);
  const StopSignals signals(StopSignals::Role::kServer);
  ShardOptions options = arguments.options;
  options.cluster = job::ClusterConfig::from_environment();
  options.stop = &signals.stop();
  try {
    serve_shard(arguments.config, arguments.overrides, options);
  } catch (const net::NetError& error) {
    if (error.failure() != net::NetFailure::kStopped) throw;
    log_info("stopped before it served: {}", error.what());
  }
  return 0;
}

int run_loader(const LoaderOptions& arguments) {
  const StopSignals signals(StopSignals::Role::kServer);
  LoaderOptions options = arguments;
  options.cluster = job::ClusterConfig::from_environment();
  if (!arguments.cluster.store.empty()) options.cluster.store = arguments.cluster.store;
  options.stop = &signals.stop();
  try {
    serve_loader(options);
  } catch (const net::NetError& error) {
    if (error.failure() != net::NetFailure::kStopped) throw;
    log_info("stopped before it served: {}", error.what());
  }
  return 0;
}

constexpr int kMaxPort = 65535;
constexpr int kMaxLoaderThreads = 1024;

struct StoreArguments {
  std::string host = "127.0.0.1";
  std::int64_t port = 0;
};

int serve_store(const StoreArguments& arguments) {
  const StopSignals signals(StopSignals::Role::kServer);
  const std::string token = job::ClusterConfig::from_environment().token;
  const net::TcpRendezvousServer server(arguments.host, arguments.port, token);
  print(server.url() + "\n");
  signals.wait();
  return 0;
}

}  // namespace

void add_ps_arguments(CLI::App& command, Action& chosen) {
  auto arguments = std::make_shared<PsArguments>();
  command
      .add_option("CONFIG", arguments->config,
                  "The job, a YAML file; without it rank 0, a program in Python, says what it is")
      ->type_name("");
  command
      .add_option("OVERRIDES", arguments->overrides,
                  "key.path=value ..., the same as for the ranks")
      ->type_name("");
  command.add_option("--shard", arguments->options.shard, "Number of this shard, from 0")
      ->required()
      ->type_name("I");
  command.add_option("--shards", arguments->options.num_shards, "Number of shards")
      ->required()
      ->type_name("N");
  command
      .add_option("--workers", arguments->options.num_workers,
                  "Threads that work on rows; 0: one per CPU")
      ->type_name("W");
  const bool is_command = command.get_parent() != nullptr;  // not the program satrap-ps
  end_help(
      command,
      concat(is_command ? "satrap " : "", command.get_name(), " clicks.yaml --shard 0 --shards 2"),
      "The environment tells where the processes of the job meet: SATRAP_STORE (file:///DIR or\n"
      "tcp://HOST:PORT), SATRAP_TOKEN (the job's secret), SATRAP_INTERFACE (network interface or\n"
      "address to listen on, default 127.0.0.1). satrap-run sets them. Serves until SIGTERM.");
  command.callback(
      [&chosen, arguments] { chosen = [arguments] { return run_shard(*arguments); }; });
}

void add_ps_command(CLI::App& program, Action& chosen) {
  add_ps_arguments(*program.add_subcommand("ps", "Serve one parameter-server shard of a job"),
                   chosen);
}

void add_loader_command(CLI::App& program, Action& chosen) {
  CLI::App* command =
      program.add_subcommand("loader", "Read and parse training data for the ranks of jobs");
  auto options = std::make_shared<LoaderOptions>();
  command
      ->add_option("--store", options->cluster.store,
                   "URL of the store where the processes of the job meet (default: SATRAP_STORE)")
      ->type_name("URL");
  command
      ->add_option("--threads", options->num_threads,
                   "Threads that parse, for each rank; 0: the CPUs, divided among the job's ranks")
      ->check(CLI::Range(0, kMaxLoaderThreads))
      ->type_name("T");
  end_help(
      *command, "satrap loader --store tcp://10.0.0.1:29500",
      "Ranks find it by their key data.loaders.store, and tell it what to read. It must see the\n"
      "files under the same paths. SATRAP_TOKEN is the job's secret. SATRAP_INTERFACE is the\n"
      "network interface or address to listen on (default 127.0.0.1). It may start and end while\n"
      "ranks train. Serves until SIGTERM.");
  command->callback([&chosen, options] { chosen = [options] { return run_loader(*options); }; });
}

void add_store_command(CLI::App& program, Action& chosen) {
  CLI::App* command = program.add_subcommand(
      "store", "Serve the store where the processes of a job on several machines meet");
  auto arguments = std::make_shared<StoreArguments>();
  command->add_option("--host", arguments->host, "Address or network interface to listen on")
      ->capture_default_str();
  command->add_option("--port", arguments->port, "Port, up to 65535; 0: any free one")
      ->check(CLI::Range(0, kMaxPort))
      ->capture_default_str();
  end_help(
      *command, "satrap store --host 10.0.0.1 --port 29500",
      "Prints its URL. Clients must prove that they know SATRAP_TOKEN, the job's secret, which is\n"
      "read from the environment and may be missing only at 127.0.0.1. Serves until SIGTERM.");
  command->callback(
      [&chosen, arguments] { chosen = [arguments] { return serve_store(*arguments); }; });
}

}  // namespace satrap::cli
