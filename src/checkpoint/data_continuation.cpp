#include "satrap/checkpoint/data_continuation.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "satrap/checkpoint/checkpoint_reader.h"
#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/data/file_prefix.h"
#include "src/checkpoint/data_changes.h"

namespace satrap::checkpoint {
namespace {

std::string place_of(const data::DataPosition& position) {
  const bool is_shuffled = position.next_row == 0;
  return fmt::format("{} {} of epoch {}", is_shuffled ? "after batch" : "at row",
                     is_shuffled ? position.batches : position.next_row, position.epoch + 1);
}

/// `is_divided`: which rows are for training follows from their numbers, also behind the position,
/// where earlier epochs have trained on them.
void refuse(const std::string& checkpoint,
            const data::DataPosition& position,
            const std::vector<DataChange>& changes,
            bool is_divided) {
  std::string problems;
  for (const DataChange& change : changes) {
    const bool moves_trained_rows =
        is_divided && position.epoch > 0 && change.kind == DataChangeKind::kAhead;
    if (change.kind != DataChangeKind::kRead && !moves_trained_rows) continue;
    problems += fmt::format("cannot continue from {} with other training data: {}\n", checkpoint,
                            change.text);
  }
  if (problems.empty()) return;
  throw Error(ErrorCode::kInvalidConfig,
              fmt::format("{}training data that have been read must stay as they were; to continue "
                          "{} of the data as they are now, whatever has been trained on: "
                          "--accept-changed-data\n",
                          problems, place_of(position)));
}

/// An evaluation part at the tail begins earlier when there are fewer rows.
void refuse_trained_rows(const std::string& checkpoint,
                         const Manifest& manifest,
                         std::int64_t first_eval_row) {
  const data::DataPosition position = manifest.position_of(0, 1);
  const std::int64_t trained =
      position.epoch > 0 ? manifest.first_eval_row : position.rows_read;  // rows before this one
  if (first_eval_row >= trained) return;
  throw Error(
      ErrorCode::kInvalidConfig,
      fmt::format("cannot continue from {} with other training data: data.eval keeps the "
                  "rows from {} on for evaluation, and those before {} have been trained "
                  "on; bring back the rows that are gone, or evaluate trained rows too with "
                  "--accept-changed-data",
                  checkpoint, first_eval_row, trained));
}

void tell(const DataChange& change) {
  switch (change.kind) {
    case DataChangeKind::kRead:
      return log_warning("accepted: {}", change.text);
    case DataChangeKind::kAhead:
      return log_info("changed: {}", change.text);
    case DataChangeKind::kAppended:
    case DataChangeKind::kNone:
      return log_info("{}", change.text);
  }
}

}  // namespace

DataContinuation compare_data(const std::string& checkpoint,
                              const data::Dataset& data,
                              bool accepts,
                              bool logs) {
  const std::vector<data::DataFile> now = data.training_files();
  if (now.empty()) return {};  // generated
  const std::optional<std::vector<data::DataFile>> before = read_data_files(checkpoint);
  if (!before) {
    if (logs) {
      log_info("the training files are not compared: {} has no record of those it was trained on",
               checkpoint);
    }
    return {};
  }
  const Manifest manifest = Manifest::read(checkpoint);
  const data::DataPosition position = manifest.position_of(0, 1);
  const std::vector<DataChange> changes =
      data_changes(*before, position.rows_read, now, [&](const std::string& path, auto bytes) {
        return data::examine_prefix(data.path_of(path), bytes);
      });
  if (!accepts) {
    refuse(checkpoint, position, changes, data.config().eval.is_part());
    if (data.config().eval.by_tail()) {
      refuse_trained_rows(checkpoint, manifest, data.first_eval_row());
    }
  }
  DataContinuation result;
  bool accepted = false;
  for (const DataChange& change : changes) {
    if (logs) tell(change);
    if (change.kind != DataChangeKind::kNone) result.changes.push_back(change.text);
    accepted |= change.kind == DataChangeKind::kRead;
  }
  if (logs && accepted) {
    log_warning(
        "continuing {} of the data as they are now: rows may be left out or trained on twice",
        place_of(position));
  }
  return result;
}

void require_same_changes(const DataContinuation& mine,
                          const std::vector<std::string>& of_chief,
                          std::int64_t rank) {
  if (mine.changes == of_chief) return;
  const auto [here, there] = std::ranges::mismatch(mine.changes, of_chief);
  const auto text_of = [](const auto& at, const auto& all) {
    return at == all.end() ? std::string("no such change") : *at;
  };
  throw Error(ErrorCode::kInvalidConfig,
              fmt::format("rank {} sees other training files than rank 0, since the checkpoint: "
                          "{}; rank 0: {}; all ranks must read the same files",
                          rank, text_of(here, mine.changes), text_of(there, of_chief)));
}

}  // namespace satrap::checkpoint
