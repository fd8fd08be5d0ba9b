#include "job_preview.h"

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
#include "satrap/data/remote_folder.h"
#include "satrap/data/schema.h"
#include "satrap/data/shared_files.h"
#include "satrap/trainer/dry_run.h"

namespace satrap::app {
namespace {

std::string describe_batch(const job::JobConfig& config, bool of_evaluation) {
  const trainer::FirstBatch first = trainer::read_first_batch(config, of_evaluation);
  std::string shares;
  for (const auto& [label, share] : first.positive_shares) {
    const std::string name = first.positive_shares.size() > 1 ? label + " " : "";
    shares += fmt::format(", {}{:.2f}% positive", name, 100.0 * share);
  }
  return fmt::format("  first batch: {} examples{}, {} ids, {} bad row{} before its end\n",
                     first.examples, shares, first.ids, first.bad_rows,
                     first.bad_rows == 1 ? "" : "s");
}

std::string describe_tables(const std::vector<trainer::DryRun::Table>& tables) {
  constexpr double kMillion = 1e6;
  std::size_t width = 5;
  for (const auto& table : tables) width = std::max(width, table.name.size());
  std::string text = fmt::format("tables\n  {:<{}}  {:>7}  {:>9}  {:>15}  {:>16}\n", "table", width,
                                 "weights", "row", "a million rows", "first batch");
  std::int64_t bytes = 0;
  for (const auto& table : tables) {
    const auto million = static_cast<std::int64_t>(kMillion * static_cast<double>(table.row_bytes));
    text +=
        fmt::format("  {:<{}}  {:>7}  {:>9}  {:>15}  {:>11} rows\n", table.name, width, table.dim,
                    format_bytes(table.row_bytes), format_bytes(million), table.first_rows);
    bytes += table.first_rows * table.row_bytes;
  }
  return text + fmt::format("  rows of the first batch: {}\n", format_bytes(bytes));
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

}  // namespace

std::string describe_data(const job::JobConfig& config) {
  const data::Schema schema = data::resolve_schema(config.data);
  std::string text = "training data\n" +
                     data::describe_columns(config.data, schema, data::Role::kTrain) +
                     describe_batch(config, false);
  if (!config.data.has_eval()) return text + "evaluation data\n  none (data.eval)\n";
  text += "evaluation data\n" + data::describe_columns(config.data, schema, data::Role::kEval) +
          describe_batch(config, true);
  const std::vector<std::string> shared = data::shared_files(config.data);
  return shared.empty() ? text : text + "  look at: " + data::describe_shared_files(shared) + "\n";
}

std::string describe_dry_run(const job::JobConfig& config) {
  constexpr std::int64_t kFloat = sizeof(float);
  std::string text = describe_data(config);
  const trainer::DryRun run = trainer::dry_run(config);
  text += fmt::format("model\n  {}: {} dense parameters, {}; logloss of the first batch {:.4f}\n",
                      config.model.type, run.dense_parameters,
                      format_bytes(run.dense_parameters * kFloat), run.logloss);
  text += describe_tables(run.tables);
  text += fmt::format("memory\n  of this process, with one batch and no trained row: {}\n",
                      format_bytes(resident_bytes()));
  return text + describe_run_dir(config.run_dir);
}

}  // namespace satrap::app
