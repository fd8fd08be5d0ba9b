#include <array>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "commands.h"
#include "generate.h"
#include "job_arguments.h"
#include "output.h"
#include "satrap/core/config.h"
#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/log.h"
#include "satrap/core/resource.h"
#include "satrap/data/inspect.h"
#include "satrap/data/schema.h"

namespace satrap::app {
namespace {

// ------------------------------------------------------------------------------------- generate

struct GenerateArguments {
  std::string out, eval_out;
  std::int64_t threads = 0;
  std::vector<std::string> options;   // settings of SyntheticConfig: "rows=5", "zipf=1.1", …
  std::vector<std::string> settings;  // and more of them, which win
};

/// The settings most wanted have options of their own.
struct SettingOption {
  const char* name;
  const char* setting;
  const char* text;
};
constexpr std::array kSettingOptions = {
    SettingOption{"--rows", "rows", "Rows of --out (default 1000000)"},
    SettingOption{"--eval-rows", "eval_rows", "Rows of --eval-out (default 100000)"},
    SettingOption{"--seed", "seed", "Another click log of the same kind (default 1)"},
    SettingOption{"--scale", "scale", "Factor on the number of ids of each feature (default 1)"},
    SettingOption{"--base-rate", "base_rate", "Share of clicks (default 0.256)"},
    SettingOption{"--zipf", "zipf", "Skew of the ids, one number or [one per feature]"},
    SettingOption{"--drift", "drift", "How fast popular ids are replaced (default 0)"},
    SettingOption{"--new-id-rate", "new_id_rate", "Share of ids never seen before (default 0)"},
};

/// A Criteo file has 13 numbers and 26 single ids.
void check_fits_criteo(const data::SyntheticConfig& config) {
  const auto fail = [](const std::string& what) {
    throw Error(ErrorCode::kInvalidConfig,
                what + "; train with data.format=synthetic for data of another shape");
  };
  if (config.num_numeric != 13) fail("num_numeric: a Criteo file has 13 numbers");
  if (config.num_features() != 26) fail("cardinalities: a Criteo file has 26 categorical columns");
  for (const std::int64_t most : config.max_ids) {
    if (most != 1) fail("max_ids: a Criteo file has one id per feature");
  }
}

void generate_file(const data::SyntheticGenerator& generator,
                   std::int64_t first_row,
                   std::int64_t num_rows,
                   ThreadPool& pool,
                   const std::string& path) {
  data::BestReachable best;
  if (path == "-") {
    best = generate_criteo(generator, first_row, num_rows, pool, print);
  } else {
    FileWriter file(path);
    best = generate_criteo(generator, first_row, num_rows, pool,
                           [&](std::string_view text) { file.write(text); });
    file.finish();
  }
  const std::string report =
      fmt::format("{}: {} rows, base rate {:.4f}, best reachable auc {:.5f}, logloss {:.5f}\n",
                  path, num_rows, best.base_rate, best.auc, best.logloss);
  if (path == "-") {  // standard output has the rows
    log_info("{}", report.substr(0, report.size() - 1));
  } else {
    print(report);
  }
}

int generate(const GenerateArguments& arguments) {
  data::SyntheticConfig config;
  std::vector<std::string> settings = arguments.options;
  settings.insert(settings.end(), arguments.settings.begin(), arguments.settings.end());
  load_config(config, "/dev/null", settings);  // nothing but the command line
  config.validate("data generate");
  check_fits_criteo(config);
  const data::SyntheticGenerator generator(config);
  ThreadPool pool(arguments.threads > 0 ? arguments.threads : num_cpus());
  generate_file(generator, 0, config.rows, pool, arguments.out);
  if (!arguments.eval_out.empty()) {
    generate_file(generator, config.rows, config.eval_rows, pool, arguments.eval_out);
  }
  return 0;
}

void add_generate(CLI::App& group, Action& chosen) {
  CLI::App* command = group.add_subcommand("generate",
                                           "Write a made-up click log in Criteo's format whose "
                                           "best reachable AUC and logloss are known");
  auto arguments = std::make_shared<GenerateArguments>();
  command->add_option("--out", arguments->out, "Where the rows go; -: standard output")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--eval-out", arguments->eval_out,
                   "Where eval_rows further rows of the same teacher go; nowhere if left out")
      ->type_name("FILE");
  command->add_option("--threads", arguments->threads, "0: one per CPU")
      ->check(CLI::Range(0, 1024))
      ->type_name("N");
  for (const SettingOption& option : kSettingOptions) {
    const std::string setting = option.setting;
    command
        ->add_option_function<std::string>(
            option.name,
            [arguments, setting](const std::string& value) {
              arguments->options.push_back(setting + "=" + value);
            },
            option.text)
        ->type_name("VALUE");
  }
  command
      ->add_option("SETTINGS", arguments->settings,
                   "key=value ... of `satrap config explain data.synthetic`")
      ->type_name("");
  command->callback(
      [&chosen, arguments] { chosen = [arguments] { return generate(*arguments); }; });
}

// ------------------------------------------------------------------------------------- head, stats

struct LookArguments {
  JobArguments job;
  bool eval = false;
  std::int64_t rows = 0;
};

using Describe = std::string (*)(const data::DataConfig&,
                                 const data::Schema&,
                                 data::Role,
                                 std::int64_t);

void add_look(CLI::App& group,
              Action& chosen,
              const char* name,
              const char* text,
              std::int64_t default_rows,
              const char* rows_text,
              Describe describe) {
  CLI::App* command = group.add_subcommand(name, text);
  auto arguments = std::make_shared<LookArguments>();
  arguments->rows = default_rows;
  arguments->job.add_to(*command);
  command->add_option("--rows", arguments->rows, rows_text)
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  command->add_flag("--eval", arguments->eval, "The evaluation data instead of the training data");
  command->callback([&chosen, arguments, describe] {
    chosen = [arguments, describe] {
      const data::DataConfig config = arguments->job.load().data;
      if (arguments->eval && !config.has_eval()) {
        throw Error(ErrorCode::kInvalidConfig,
                    "--eval: the job has no evaluation data (data.eval)");
      }
      print(describe(config, data::resolve_schema(config),
                     arguments->eval ? data::Role::kEval : data::Role::kTrain, arguments->rows));
      return 0;
    };
  });
}

}  // namespace

void add_data_commands(CLI::App& program, Action& chosen) {
  CLI::App* group = program.add_subcommand("data", "Make up, show and summarise training data");
  group->require_subcommand(1);
  add_generate(*group, chosen);
  add_look(*group, chosen, "head", "Print the first rows of a job as satrap understands them", 10,
           "How many (default 10)", data::describe_head);
  add_look(*group, chosen, "stats", "Print statistics of every column of a job's data", 0,
           "Only of the first N rows (default 0: all)", data::describe_stats);
}

}  // namespace satrap::app
