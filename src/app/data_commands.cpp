#include <array>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "satrap/cli/output.h"
#include "satrap/core/config.h"
#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/log.h"
#include "satrap/core/resource.h"
#include "satrap/core/text.h"
#include "satrap/data/inspect.h"
#include "satrap/data/output_file.h"
#include "satrap/data/schema.h"
#include "satrap/data/synthetic_tsv.h"
#include "satrap/prepare/prepare.h"
#include "src/app/commands.h"
#include "src/app/job_arguments.h"

namespace satrap::app {
namespace {

// ------------------------------------------------------------------------------------- generate

struct GenerateArguments {
  std::string out, eval_out;
  std::int64_t threads = 0;
  std::vector<std::string> options;   // settings of SyntheticConfig: "rows=5", "zipf=1.1", …
  std::vector<std::string> settings;  // more of them, which override
};

/// The most common settings have their own options.
struct SettingOption {
  const char* name;
  const char* setting;
  const char* text;
};
constexpr std::array kSettingOptions = {
    SettingOption{"--rows", "rows", "Rows of --out (default 1000000)"},
    SettingOption{"--eval-rows", "eval_rows", "Rows of --eval-out (default 100000)"},
    SettingOption{"--seed", "seed", "Random seed (default 1)"},
    SettingOption{"--scale", "scale", "Factor on the number of ids of each feature (default 1)"},
    SettingOption{"--base-rate", "base_rate", "Click-through rate (default 0.256)"},
    SettingOption{"--zipf", "zipf", "Skew of the ids, one number or [one per feature]"},
    SettingOption{"--drift", "drift", "How fast popular ids are replaced (default 0)"},
    SettingOption{"--new-id-rate", "new_id_rate",
                  "Share of id occurrences whose id occurs only once (default 0)"},
};

void generate_file(const data::SyntheticGenerator& generator,
                   std::int64_t first_row,
                   std::int64_t num_rows,
                   const std::string& path,
                   std::int64_t threads) {
  const data::WrittenLog log =
      data::write_criteo_tsv(generator, first_row, num_rows, path, threads);
  const std::string report = fmt::format(
      "{}: {} rows, {}, {} ids, base rate {:.4f}; best reachable auc {:.5f}, logloss {:.5f}", path,
      num_rows, format_bytes(log.bytes),
      format_count(static_cast<double>(
          std::accumulate(log.distinct_ids.begin(), log.distinct_ids.end(), std::int64_t{0}))),
      log.best.base_rate, log.best.auc, log.best.logloss);
  if (path == "-") {  // standard output has the rows
    log_info("{}", report);
  } else {
    cli::print(report + "\n");
  }
}

int generate(const GenerateArguments& arguments) {
  data::SyntheticConfig config;
  std::vector<std::string> settings = arguments.options;
  settings.insert(settings.end(), arguments.settings.begin(), arguments.settings.end());
  load_config(config, "/dev/null", settings);  // nothing but the command line
  config.validate("data generate");
  if (data::is_same_file(arguments.out, arguments.eval_out)) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("--eval-out: ", arguments.eval_out,
                       " is the file of --out, whose rows it would replace; name another file"));
  }
  data::check_criteo_shape(config, "data generate");
  const data::SyntheticGenerator generator(config);
  const std::int64_t threads = arguments.threads > 0 ? arguments.threads : num_cpus();
  generate_file(generator, 0, config.rows, arguments.out, threads);
  if (!arguments.eval_out.empty()) {
    generate_file(generator, config.rows, config.eval_rows, arguments.eval_out, threads);
  }
  return 0;
}

void add_generate(CLI::App& group, cli::Action& chosen) {
  CLI::App* command = group.add_subcommand("generate",
                                           "Generate a click log in Criteo's format whose best "
                                           "reachable AUC and logloss are known");
  auto arguments = std::make_shared<GenerateArguments>();
  command
      ->add_option("--out", arguments->out,
                   "File for the rows, compressed if named .gz or .zst; -: standard output")
      ->required()
      ->type_name("FILE");
  CLI::Option* eval_out =
      command->add_option("--eval-out", arguments->eval_out,
                          "File for eval_rows more rows of the same teacher; default: none");
  eval_out->type_name("FILE");
  command->add_option("--threads", arguments->threads, "Threads; 0: one per CPU")
      ->check(CLI::Range(0, 1024))
      ->type_name("N");
  for (const SettingOption& option : kSettingOptions) {
    const std::string setting = option.setting;
    CLI::Option* added = command->add_option_function<std::string>(
        option.name,
        [arguments, setting](const std::string& value) {
          arguments->options.push_back(setting + "=" + value);
        },
        option.text);
    added->type_name("VALUE");
    if (setting == "eval_rows") added->needs(eval_out);
  }
  command
      ->add_option("SETTINGS", arguments->settings,
                   "key=value ... of `satrap config explain data.synthetic`")
      ->type_name("");
  cli::end_help(
      *command,
      "satrap data generate --rows 2000000 --out train.tsv --eval-rows 200000 --eval-out eval.tsv");
  command->callback(
      [&chosen, arguments] { chosen = [arguments] { return generate(*arguments); }; });
}

// ------------------------------------------------------------------------------------- prepare

int run_prepare(prepare::Request& request, const std::string& memory) {
  request.memory_bytes = parse_bytes(memory);
  if (request.threads == 0) request.threads = num_cpus();
  const prepare::Prepared prepared = prepare::prepare(request);
  std::string text;
  for (const auto& [split, rows] : prepared.rows) {
    text += fmt::format("{:<12}{} rows\n", split, with_commas(rows));
  }
  for (const std::string& note : prepared.notes) text += "note        " + note + "\n";
  cli::print(text + fmt::format("next        satrap train {}\n",
                                shown_path(prepared.first_configuration)));
  return 0;
}

void add_prepare(CLI::App& group, cli::Action& chosen) {
  CLI::App* command = group.add_subcommand(
      "prepare",
      "Turn the published files of a data set into parts to train on, with configurations");
  auto request = std::make_shared<prepare::Request>();
  auto memory = std::make_shared<std::string>("1GiB");
  command->add_option("NAME", request->set, "The data set")
      ->required()
      ->type_name("")
      ->check(CLI::IsMember(prepare::data_set_names()));
  command->add_option("--from", request->from, "Folder with the published files")->type_name("DIR");
  command->add_option("--out", request->out, "Folder for parts and configurations")
      ->required()
      ->type_name("DIR");
  command->add_option("--threads", request->threads, "Threads; 0: one per CPU")
      ->check(CLI::Range(0, 1024))
      ->type_name("N");
  command
      ->add_option("--part-rows", request->part_rows,
                   "Rows of the published files per part: what a killed preparation may lose")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->type_name("N");
  command->add_option("--memory", *memory, "Memory for sorting (movielens, taobao)")
      ->type_name("SIZE")
      ->capture_default_str();
  command->add_flag("--overwrite", request->overwrite,
                    "Replace the parts of another preparation; runs in the folder stay");
  cli::end_help(
      *command, "satrap data prepare criteo --from downloads/criteo --out data/criteo",
      "Data sets:\n" + prepare::describe_data_sets() + "After a kill the same command continues.");
  command->callback([&chosen, request, memory] {
    chosen = [request, memory] { return run_prepare(*request, *memory); };
  });
}

// ------------------------------------------------------------------------------------- head, stats

struct LookArguments {
  JobArguments job;
  bool eval = false;
  std::int64_t rows = 0;
};

using Describe = std::string (*)(const data::Dataset&,
                                 data::Role,
                                 std::int64_t num_rows,
                                 std::int64_t seed);

void add_look(CLI::App& group,
              cli::Action& chosen,
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
  command->add_flag("--eval", arguments->eval,
                    "Use the evaluation data instead of the training data");
  cli::end_help(*command, fmt::format("satrap data {} clicks.yaml --rows 1000", name));
  command->callback([&chosen, arguments, describe] {
    chosen = [arguments, describe] {
      const job::JobConfig job = arguments->job.load();
      const data::DataConfig& config = job.data;
      if (arguments->eval && !config.has_eval()) {
        throw Error(ErrorCode::kInvalidConfig,
                    "--eval: the job has no evaluation data (data.eval)");
      }
      cli::print(describe(data::Dataset(config, {.folder = job.folder}),
                          arguments->eval ? data::Role::kEval : data::Role::kTrain, arguments->rows,
                          job.seed));
      return 0;
    };
  });
}

}  // namespace

void add_data_commands(CLI::App& program, cli::Action& chosen) {
  CLI::App* group =
      program.add_subcommand("data", "Generate, prepare, show and summarise training data");
  group->require_subcommand(1);
  cli::end_help(*group, "satrap data head clicks.yaml --rows 3");
  add_generate(*group, chosen);
  add_prepare(*group, chosen);
  add_look(*group, chosen, "head", "Print the first rows of a job as satrap reads them", 10,
           "Number of rows (default 10)", data::describe_head);
  add_look(*group, chosen, "stats", "Print statistics of every column of a job's data", 0,
           "Use only the first N rows (default 0: all)", data::describe_stats);
}

}  // namespace satrap::app
