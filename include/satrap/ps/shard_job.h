#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "satrap/table/row_file.h"
#include "satrap/table/staleness_bound.h"

namespace satrap::ps {

/// What a rank says of its copy of a row that it pulls (ShardJob::keeps_copies): the age a of the
/// copy, which is of E_{step-1-a}; that there is one of unknown age, because it is on its way in
/// the answer to an earlier pull, or is too old to say; or that there is none.
using CopyAge = std::uint16_t;
inline constexpr CopyAge kUnknownAge = 0xFFFE, kNoCopy = 0xFFFF;

/// The age, at the pull of `step`, of a copy of E_version.
constexpr CopyAge copy_age(std::int64_t step, std::int64_t version) {
  const std::int64_t age = step - 1 - version;
  return age >= 0 && age < kUnknownAge ? static_cast<CopyAge>(age) : kUnknownAge;
}

/// How the updates of a job are ordered on a shard. E_t: the rows after all updates of steps <= t.
struct ShardJob {
  /// Number of this start of the job, drawn by rank 0. Requests of any other start are refused, so
  /// that late requests of an earlier start do no harm.
  std::uint64_t session = 0;

  std::int64_t num_ranks = 1;

  /// async: pulls are answered at once, and every push is applied as it arrives. Otherwise the
  /// gradients of a step are summed over the ranks, in their order, before the optimizer sees them,
  /// and steps are applied in order.
  bool async = false;

  /// τ(t): the pull of step t is answered once E_{t-1-τ(t)} exists. Not used by async.
  table::StalenessBound staleness = 0;

  /// The pull of step t reads exactly E_{t-1-τ(t)}: an update waits for the pulls of all ranks that
  /// are to read the rows without it. Not with async.
  bool deterministic = false;

  std::int64_t first_step = 1;

  /// The ranks train the rows in their caches and put them here, each row by one of them: there are
  /// no pulls and updates, and a snapshot is of the step that it names.
  bool is_cached = false;

  /// The ranks keep copies of rows. Each pull says which, and how old they are, and is answered
  /// without the rows that have not changed since, or whose copies the bound still allows; in
  /// deterministic mode only without the former. Not with async, nor where tables have limits.
  bool keeps_copies = false;

  /// Files of rows to start from, as write_snapshot writes them, of any number of shards; empty: no
  /// row exists yet. A shard reads its own rows from each file.
  std::vector<table::RowFile> row_files = {};
};

/// Statistics of a shard.
struct ShardStats {
  std::int64_t rows = 0;
  std::int64_t table_bytes = 0;
  std::int64_t resident_bytes = 0;  // of the process
  double cpu_seconds = 0.0;         // of the process
  std::int64_t applied_step = 0;    // all updates up to it
  std::int64_t repeated_requests = 0;

  /// histogram[s]: pulls answered from rows that were s updates older than sync's, at the worker
  /// with the oldest rows. In async mode, which has no bound, the last entry counts everything from
  /// its number on.
  std::vector<std::int64_t> staleness_histogram = {};
};

/// A file of rows that a shard has written.
struct SnapshotFile {
  std::int32_t table = 0;
  std::string name;  // within the checkpoint's directory
  std::int64_t rows = 0, row_bytes = 0, bytes = 0;
  std::string xxh3;  // hex
};

}  // namespace satrap::ps
