#include "src/data/passes/role_passes.h"

#include <algorithm>
#include <utility>

#include "satrap/core/error.h"
#include "src/data/passes/file_passes.h"
#include "src/data/passes/generated_passes.h"
#include "src/data/passes/topic_passes.h"

namespace satrap::data {

std::unique_ptr<RowBlockSource> RolePasses::open(const Schema& schema, RowPass pass) const {
  const std::int64_t max_rows = rows_.max_rows;
  pass.max_rows = pass.max_rows > 0 && max_rows > 0 ? std::min(pass.max_rows, max_rows)
                                                    : std::max(pass.max_rows, max_rows);
  pass.selection = rows_.selection;
  return open_limited(schema, pass);
}

void RolePasses::use_cache(bool /*writes*/) {}

void RolePasses::require_rereadable(const std::string& purpose) const {
  if (is_rereadable()) return;
  throw Error(ErrorCode::kInvalidConfig,
              concat(role_name(), " data from '", paths().front(),
                     "' can be read only once, which rules out ", purpose));
}

std::optional<TopicPosition> RolePasses::topic_position(const DataPosition& position) const {
  const std::shared_ptr<TopicLog> log = topic_log();
  return log ? std::optional(log->at(position)) : std::nullopt;
}

std::string RolePasses::no_rows_message() const {
  const std::vector<std::string> from = paths();
  std::string message = concat("no row of the ", role_name(), " data can be used ('", from.front(),
                               "'", from.size() > 1 ? " and others" : "", ")");
  if (rows_.selection && !rows_.selection->condition().empty()) {
    message += concat("; only rows that meet ", rows_.selection->condition(), " are read");
  }
  const BadRowPolicy& bad_rows = *rows_.bad_rows;
  const Schema& schema = data_.schema();
  if (rows_.role == Role::kTrain && (schema.weight >= 0 || schema.num_labels() > 1)) {
    message += "; rows of weight 0 and rows without any label are left out";
  }
  if (bad_rows.count() > 0) {
    message += concat(": ", bad_rows.count(), " bad rows; the first: ", bad_rows.first());
  }
  return message;
}

std::string RolePasses::role_name() const {
  const Role role = rows_.role;
  return role == Role::kTrain ? "training" : role == Role::kEval ? "evaluation" : "prediction";
}

std::unique_ptr<RolePasses> open_role(const Dataset& data,
                                      Role role,
                                      std::shared_ptr<BadRowPolicy> bad_rows,
                                      const OpenDeliveries& elsewhere) {
  const DataConfig& config = data.config();
  const bool of_training = role == Role::kTrain || config.eval.is_part();
  const FilesConfig& files =
      of_training ? static_cast<const FilesConfig&>(config.train) : config.eval;
  RolePasses::Rows rows{.role = role, .max_rows = files.max_rows, .bad_rows = std::move(bad_rows)};
  if (data.is_generated()) return std::make_unique<GeneratedPasses>(data, std::move(rows));
  rows.selection = RowSelection::of(config, role);
  if (data.is_topic() && role == Role::kTrain) {
    return std::make_unique<TopicPasses>(data, std::move(rows), elsewhere);
  }
  return std::make_unique<FilePasses>(data, std::move(rows), elsewhere);
}

}  // namespace satrap::data
