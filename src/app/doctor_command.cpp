#include <cstdlib>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "satrap/backend/device.h"
#include "satrap/cli/output.h"
#include "satrap/core/error.h"
#include "satrap/core/resource.h"
#include "satrap/data/kafka_support.h"
#include "satrap/data/parquet_support.h"
#include "satrap/data/store_support.h"
#include "satrap/dense/dense_network.h"
#include "satrap/dense/precision.h"
#include "satrap/job/job_config.h"
#include "satrap/net/endpoint.h"
#include "src/app/commands.h"
#include "src/app/gpus.h"
#include "src/app/machine.h"

namespace satrap::app {
namespace {

double gib(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

std::string line(const std::string& name, const std::string& text) {
  return fmt::format("{:10} {}\n", name, text);
}

std::string describe_threads(const Machine& machine) {
  std::string text = fmt::format("{} by default (train.threads); {} of {} CPUs usable", num_cpus(),
                                 machine.usable_cpus, machine.online_cpus);
  if (machine.cpu_quota > 0.0) {
    text += fmt::format(", control group allows the time of {:.1f}", machine.cpu_quota);
  }
  return text;
}

std::string describe_precision() {
  const bool bf16 = dense::fastest_precision(inspect_cpu()) == dense::Precision::kBf16;
  const dense::ProductRates rates = dense::measure_products();
  return fmt::format(
      "fp32; train.precision=auto picks {} here: products run at {:.3g} GFLOP/s per thread in "
      "fp32, {:.3g} in bf16",
      bf16 ? "bf16" : "fp32", rates.fp32, rates.bf16);
}

std::string describe_memory(const Machine& machine) {
  std::string text = fmt::format("{:.1f} GiB, {:.1f} GiB available", gib(machine.memory_bytes),
                                 gib(machine.available_bytes));
  if (machine.memory_limit_bytes > 0) {
    text += fmt::format(", control group allows {:.1f} GiB", gib(machine.memory_limit_bytes));
  }
  return text;
}

/// The cache of rows that a job on this machine can have.
std::string describe_cache() {
  job::CacheConfig cache;
  cache.memory = "auto";
  return fmt::format(
      "of rows, in the memory of the cpu; embedding.cache.memory=auto is {:.1f} GiB here",
      gib(cache.memory_bytes(memory_bytes())));
}

std::string describe_build(const Build& build) {
  std::string text = fmt::format("{}, {}, for {}", build.compiler, build.type, build.instructions);
  if (!build.sanitizers.empty()) text += fmt::format(", sanitizers: {}", build.sanitizers);
  if (!build.missing.empty()) {
    text += fmt::format("; this CPU lacks {}: build on this machine", build.missing);
  }
  return text;
}

/// Says what protects a job of several processes that would start in this environment.
std::string describe_network() {
  const char* const token = std::getenv("SATRAP_TOKEN");
  if (token == nullptr || *token == '\0') {
    return "SATRAP_TOKEN is not set: processes listen at 127.0.0.1 only (satrap-run sets one)";
  }
  return "SATRAP_TOKEN is set: peers prove that they know it; what they then send is neither "
         "encrypted nor authenticated, and needs a private network (SECURITY.md)";
}

/// A part that is in a library of its own.
std::string describe_part(std::string (*describe)()) {
  try {
    return describe();
  } catch (const Error& error) {
    return fmt::format("off: {}", error.what());
  }
}

int doctor() {
  const Machine machine = inspect_machine();
  const Build build = inspect_build();
  std::string text = line("satrap", SATRAP_VERSION);
  text += line("build", describe_build(build));
  text += line("cpu", machine.cpu.name);
  text += line("features", fmt::format("{}", fmt::join(machine.cpu.features, " ")));
  text += line("threads", describe_threads(machine));
  text += line("memory", describe_memory(machine));
  text += line("cache", describe_cache());
  text += line("libc", machine.libc);
  std::string torch, precision;
  try {
    torch = dense::describe_libtorch();
  } catch (const Error& error) {
    torch = fmt::format("off: {}", error.what());
  }
  try {
    precision = describe_precision();
  } catch (const Error&) {
    precision = "fp32";  // bf16 takes libtorch here, and its line says why there is none
  }
  text += line("torch", torch);
  text += line("precision", precision);
  text += line("onnx", describe_part(dense::describe_onnx));
  text += line("parquet", describe_part(data::describe_parquet));
  text += line("kafka", describe_part(data::describe_kafka));
  text += line("s3", describe_part(data::describe_s3));
  text += line("hdfs", describe_part(data::describe_hdfs));
  for (const auto& [name, what] : describe_gpus()) text += line(name, what);
  text += line("gloo", net::describe_gloo());
  text += line("network", describe_network());
  cli::print(text);
  return 0;
}

int print_num_gpus() {
  if (const std::string reason = backend::why_no_cuda(); !reason.empty()) {
    throw Error(ErrorCode::kUnavailable, concat("there is no GPU that a job could use: ", reason));
  }
  cli::print(fmt::format("{}\n", backend::num_cuda_devices()));
  return 0;
}

}  // namespace

void add_doctor_command(CLI::App& program, cli::Action& chosen) {
  CLI::App* command =
      program.add_subcommand("doctor", "Show what this build and machine can do, and what is off");
  auto only_gpus = std::make_shared<bool>(false);
  command->add_flag("--num-gpus", *only_gpus,
                    "Print only the number of GPUs that a job on this machine can use");
  cli::end_help(*command, "satrap doctor");
  command->callback([&chosen, only_gpus] {
    chosen = *only_gpus ? cli::Action(print_num_gpus) : cli::Action(doctor);
  });
}

}  // namespace satrap::app
