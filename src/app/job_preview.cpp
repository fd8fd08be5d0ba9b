#include "src/app/job_preview.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "satrap/core/file.h"
#include "satrap/core/resource.h"
#include "satrap/core/text.h"
#include "satrap/data/columns.h"
#include "satrap/data/common_files.h"
#include "satrap/data/remote_folder.h"
#include "satrap/trainer/dry_run.h"

namespace satrap::app {
namespace {

std::string describe_batch(const data::Dataset& data, std::int64_t seed, data::Role role) {
  const trainer::FirstBatch first = trainer::read_first_batch(data, seed, role);
  std::string shares;
  for (const auto& [label, mean] : first.labels) {
    const std::string name = first.labels.size() > 1 ? label.name + " " : "";
    if (label.source.is_binary()) {
      shares += fmt::format(", {}{:.2f}% positive", name, 100.0 * mean);
    } else if (label.source.is_number()) {
      shares += fmt::format(", {}mean {:.4g}", name, mean);
    } else {
      shares += fmt::format(", {} classes", label.source.classes);
    }
  }
  return fmt::format("  first batch: {} examples{}, {} ids, {} bad row{} before its end\n",
                     first.examples, shares, first.ids, first.bad_rows,
                     first.bad_rows == 1 ? "" : "s");
}

/// Says where the numbers of rows come from.
std::string describe_estimate(const trainer::DryRun& run) {
  if (run.examples_total <= 0) {
    return fmt::format("rows of the first {} examples: how many there are is unknown",
                       run.examples_seen);
  }
  if (run.examples_total <= run.examples_seen) {
    return fmt::format("rows of all {} examples", run.examples_total);
  }
  return fmt::format("rows of about {} examples, by how the first {} make tables grow",
                     format_count(static_cast<double>(run.examples_total)), run.examples_seen);
}

std::int64_t bytes_of_tables(const trainer::DryRun& run) {
  std::int64_t bytes = 0;
  for (const auto& table : run.tables) bytes += table.rows * table.row_bytes;
  return bytes;
}

std::string describe_tables(const trainer::DryRun& run) {
  std::size_t width = 5;
  for (const auto& table : run.tables) width = std::max(width, table.name.size());
  std::string text = fmt::format("tables\n  {:<{}}  {:>7}  {:>9}  {:>12}  {:>10}\n", "table", width,
                                 "weights", "row", "rows", "memory");
  for (const auto& table : run.tables) {
    text += fmt::format("  {:<{}}  {:>7}  {:>9}  {:>12}  {:>10}\n", table.name, width, table.dim,
                        format_bytes(table.row_bytes), table.rows,
                        format_bytes(table.rows * table.row_bytes));
  }
  return text + fmt::format("  {}\n", describe_estimate(run));
}

/// The memory of one process that holds all tables; ranks and shards divide it.
std::string describe_memory(const trainer::DryRun& run) {
  const std::int64_t tables = bytes_of_tables(run), process = resident_bytes();
  return fmt::format("memory\n  total: {}; tables {}, the process with one batch {}\n",
                     format_bytes(tables + process), format_bytes(tables), format_bytes(process));
}

std::string describe_run_dir(const std::string& run_dir) {
  std::error_code unknown;
  const bool is_taken = data::is_url(run_dir)
                            ? data::RemoteFolder(run_dir).find_text("config.yaml").has_value()
                            : std::filesystem::exists(run_dir + "/config.yaml", unknown);
  return fmt::format(
      "run_dir\n  {}: {}\n", shown_path(run_dir),
      is_taken ? "holds a run; --resume continues it, --overwrite removes it" : "free");
}

std::string describe_data(const data::Dataset& data, const job::JobConfig& config) {
  const std::int64_t seed = config.seed;
  std::string text = "training data\n" + data::describe_columns(data, data::Role::kTrain) +
                     describe_batch(data, seed, data::Role::kTrain);
  if (!data.config().has_eval()) return text + "evaluation data\n  none (data.eval)\n";
  text += "evaluation data\n" +
          data::describe_columns(data, data::Role::kEval, config.train.slices) +
          describe_batch(data, seed, data::Role::kEval);
  const std::vector<std::string> common = data::common_files(data);
  return common.empty() ? text : text + "  look at: " + data::describe_common_files(common) + "\n";
}

}  // namespace

std::string describe_data(const job::JobConfig& config) {
  return describe_data(trainer::data_up_to_now(config), config);
}

std::string describe_dry_run(const job::JobConfig& config,
                             const pipeline::MakeNetwork& make_network) {
  constexpr std::int64_t kFloat = sizeof(float);
  const data::Dataset data = trainer::data_up_to_now(config);
  std::string text = describe_data(data, config);
  const trainer::DryRun run = trainer::dry_run(config, data, make_network);
  text += fmt::format("model\n  {}: {} dense parameters, {}; {} of the first batch {:.4f}\n",
                      word_of(config.model.type, job::kModelTypes), run.dense_parameters,
                      format_bytes(run.dense_parameters * kFloat), run.metric, run.value);
  return text + describe_tables(run) + describe_memory(run) + describe_run_dir(config.run_dir);
}

}  // namespace satrap::app
