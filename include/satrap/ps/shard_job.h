#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "satrap/table/row_file.h"
#include "satrap/table/staleness_bound.h"

namespace satrap::ps {

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
