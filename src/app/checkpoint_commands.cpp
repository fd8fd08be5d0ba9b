#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "satrap/checkpoint/checkpoint.h"
#include "satrap/checkpoint/remote_checkpoints.h"
#include "satrap/cli/output.h"
#include "satrap/core/error.h"
#include "src/app/checkpoint_paths.h"
#include "src/app/commands.h"

namespace satrap::app {
namespace {

int list(const std::string& path) {
  std::string text = fmt::format("{:>10} {:>6} {:>12} {:>12} {:>10}  {:20}  {}\n", "step", "epoch",
                                 "examples", "rows", "MiB", "created", "path");
  for (const checkpoint::CheckpointInfo& c : checkpoints_of(path)) {
    if (!c.problem.empty()) {
      text += fmt::format("{:>10} {}: {}\n", "unreadable", c.path, c.problem);
      continue;
    }
    const std::string best = c.best_of.empty() ? "" : "  best " + c.best_of;
    text +=
        fmt::format("{:10} {:6} {:12} {:12} {:10.1f}  {:20}  {}{}\n", c.step, c.epoch, c.examples,
                    c.rows, static_cast<double>(c.bytes) / (1 << 20), c.created, c.path, best);
    std::string metrics;
    for (const auto& [name, value] : c.metrics) metrics += fmt::format(" {}={:.5f}", name, value);
    if (!metrics.empty()) text += fmt::format("{:10}{}\n", "", metrics);
  }
  cli::print(text);
  return 0;
}

/// Checks all of them, so that one run shows which are intact; throws the first error.
int verify(const std::string& path) {
  std::optional<Error> first_fault;
  for (const checkpoint::CheckpointInfo& checkpoint : checkpoints_of(path)) {
    try {
      const checkpoint::LocalCheckpoint local(checkpoint.path);
      const std::string digest = checkpoint::verify_checkpoint(local.path());
      cli::print(fmt::format("{}: ok, digest {}\n", checkpoint.path, digest));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kCorrupt) throw;
      cli::print(fmt::format("{}: corrupt\n", checkpoint.path));
      if (!first_fault) first_fault = error;
    }
  }
  if (first_fault) throw *first_fault;
  return 0;
}

struct ReshardArguments {
  std::string path, out;
  std::int64_t num_shards = 0;
};

int reshard(const ReshardArguments& arguments) {
  const std::string path = newest_checkpoint(arguments.path);
  const checkpoint::LocalCheckpoint local(path);
  if (local.path() != path && arguments.out.empty()) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("'", path,
                       "' is not replaced in its store: name a folder of this machine "
                       "for the new one with --out"));
  }
  cli::print(fmt::format(
      "{}\n", checkpoint::reshard_checkpoint(local.path(), arguments.num_shards, arguments.out)));
  return 0;
}

}  // namespace

void add_checkpoint_commands(CLI::App& program, cli::Action& chosen) {
  CLI::App* group = program.add_subcommand("checkpoint", "List, verify and reshard checkpoints");
  group->require_subcommand(1);
  cli::end_help(*group, "satrap checkpoint ls runs/clicks");

  CLI::App* ls = group->add_subcommand("ls", "List checkpoints, oldest first");
  auto listed = std::make_shared<std::string>();
  ls->add_option("DIR", *listed, "A run directory or its checkpoints/")->required()->type_name("");
  cli::end_help(*ls, "satrap checkpoint ls runs/clicks");
  ls->callback([&chosen, listed] { chosen = [listed] { return list(*listed); }; });

  CLI::App* check = group->add_subcommand(
      "verify", "Read everything, check every checksum, print a digest of the content");
  auto verified = std::make_shared<std::string>();
  check->add_option("DIR", *verified, "A checkpoint, or a run directory for all of its checkpoints")
      ->required()
      ->type_name("");
  cli::end_help(*check, "satrap checkpoint verify runs/clicks");
  check->callback([&chosen, verified] { chosen = [verified] { return verify(*verified); }; });

  CLI::App* divide = group->add_subcommand(
      "reshard", "Rewrite a checkpoint for another number of shards; print its path");
  auto divided = std::make_shared<ReshardArguments>();
  divide->add_option("DIR", divided->path, "A checkpoint, or a run directory for its newest")
      ->required()
      ->type_name("");
  divide
      ->add_option("--shards", divided->num_shards,
                   "Divide the rows of each table among this many shards, one file per shard")
      ->required()
      ->type_name("N");
  divide
      ->add_option("--out", divided->out,
                   "Write it to this folder, under its name, instead of replacing it")
      ->type_name("DIR");
  cli::end_help(
      *divide, "satrap checkpoint reshard runs/clicks --shards 4 --out resharded",
      "The content and the digest of `satrap checkpoint verify` stay the same. Any number of "
      "shards\n"
      "can load any checkpoint; each reads only files that may hold its own rows.");
  divide->callback([&chosen, divided] { chosen = [divided] { return reshard(*divided); }; });
}

}  // namespace satrap::app
