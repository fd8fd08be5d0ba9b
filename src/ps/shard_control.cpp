// The parts of Shard outside steps: begin and join, loading, snapshots.

#include <algorithm>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/hash.h"
#include "satrap/core/log.h"
#include "satrap/core/mutex.h"
#include "satrap/table/row_file.h"
#include "src/ps/shard.h"

namespace satrap::ps {
namespace {

constexpr std::int64_t kMaxRanks = 1 << 14;
constexpr std::int64_t kMaxStaleness = 1 << 20;
constexpr std::int64_t kMaxParts = 1 << 20;      // of a table in files
constexpr std::int64_t kMaxOpenSteps = 1 << 24;  // of all ranks: each costs memory

[[noreturn]] void invalid(const std::string& message) {
  throw Error(ErrorCode::kInvalidData, message);
}

bool is_same(const net::RequestTag& a, const net::RequestTag& b) {
  return a.client == b.client && a.sequence == b.sequence;
}

void answer_all(std::vector<std::unique_ptr<net::ServerCall>>& calls,
                const std::string& error,
                std::string_view answer) {
  for (auto& call : std::exchange(calls, {})) {
    if (!error.empty()) {
      call->fail(error);
    } else {
      answer_with_copy(*call, std::as_bytes(std::span(answer)));
    }
  }
}

/// Keeps a call that begins the next snapshot until this one has been written.
void wait_for_files(RunningJob::Snapshot& snapshot, std::unique_ptr<net::ServerCall>& call) {
  auto& calls = snapshot.next_calls;
  if (!calls.empty() && !is_same(calls.back()->tag(), call->tag())) {
    answer_all(calls, "a later snapshot has been asked for", {});
  }
  calls.push_back(std::move(call));
}

/// Where the workers meet: the last one to arrive acts while the others wait.
class Meeting {
 public:
  explicit Meeting(std::size_t size) : left_(size) {}

  void meet(const std::function<void()>& act) {
    const MutexLock lock(mutex_);
    if (--left_ == 0) {
      act();
      changed_.notify_all();
    } else {
      while (left_ > 0) changed_.wait(mutex_);
    }
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::size_t left_ SATRAP_GUARDED_BY(mutex_);
};

}  // namespace

// ------------------------------------------------------------------------------- begin and join

void Shard::check_tables(const std::vector<std::string>& lines) const {
  const std::string difference = first_difference(lines, table_lines_);
  if (difference.empty()) return;
  throw Error(ErrorCode::kInvalidConfig,
              concat("shard ", options_.shard, " is of another configuration: ", difference));
}

void Shard::check_job(const ShardJob& job) const {
  if (job.session == 0) invalid("session 0");
  if (job.num_ranks < 1 || job.num_ranks > kMaxRanks) {
    invalid(concat(job.num_ranks, " ranks, allowed: 1 to ", kMaxRanks));
  }
  if (job.staleness.max() > kMaxStaleness) {
    invalid(concat("staleness ", job.staleness.max(), ", allowed: 0 to ", kMaxStaleness));
  }
  const std::int64_t open_steps = job.num_ranks * RunningJob::Limits::open_steps(job);
  if (open_steps > kMaxOpenSteps) {
    invalid(concat(open_steps, " open steps of ", job.num_ranks, " ranks with staleness ",
                   job.staleness.max(), ", allowed: ", kMaxOpenSteps));
  }
  if (job.async && job.deterministic) invalid("async is never deterministic");
  if (job.is_cached && job.async) invalid("a cache in async mode");
  const auto has_limits = [](const table::TableSpec& table) {
    return table.limits.any() || table.limits.admit_after > 1;
  };
  if (job.async && std::ranges::any_of(tables_, has_limits)) {
    invalid("tables with limits need steps in their order, which async has not");
  }
  if (job.first_step < 1 || job.first_step > kMaxStep) {
    invalid(concat("first step ", job.first_step, ", allowed: 1 to ", kMaxStep));
  }
  for (const table::RowFile& file : job.row_files) {
    if (file.table < 0 || file.table >= layout_.num_tables()) {
      invalid(concat(file.path, ": of table ", file.table, ", there are ", layout_.num_tables()));
    }
    if (file.num_parts > kMaxParts || file.part < 0 || file.part >= file.num_parts) {
      invalid(concat(file.path, ": part ", file.part, " of ", file.num_parts));
    }
  }
}

void Shard::begin(Call& call) {
  BeginMessage message = parse_begin(call->payload());
  check_tables(message.tables);
  check_job(message.job);
  const std::uint64_t session = message.job.session;
  const MutexLock lock(mutex_);
  if (begin_ && begin_->job.session == session) {
    if (!is_same(begin_->tag, call->tag())) invalid("a second begin of the same session");
    begin_->calls.push_back(std::move(call));
    if (begin_->is_done) answer_all(begin_->calls, begin_->error, {});
    return;
  }
  if (old_sessions_.contains(session)) invalid("this start of the job has been replaced");
  if (begin_) {
    old_sessions_.insert(begin_->job.session);
    begin_->is_abandoned = true;
  }
  if (job_) job_->is_abandoned = true;
  job_.reset();
  begin_ = std::make_shared<Begin>();
  begin_->job = std::move(message.job);
  begin_->tag = call->tag();
  begin_->calls.push_back(std::move(call));
  control_.push([this, begin = begin_] {
    std::string error;
    try {
      start_job(*begin);
    } catch (const std::exception& failure) {
      error = failure.what();
      log_error("shard {}: cannot begin the job: {}", options_.shard, error);
    }
    const MutexLock inner(mutex_);
    begin->is_done = true;
    begin->error = error;
    if (error.empty() && begin_ == begin) job_ = worked_job_;
    answer_all(begin->calls, error, {});
  });
}

void Shard::join(Call& call) {
  const JoinMessage message = parse_join(call->payload());
  check_tables(message.tables);
  const std::shared_ptr<RunningJob> job = job_of(message.session);
  job->rank_of(call->tag());
  call->reply({});
}

void Shard::start_job(Begin& begin) {
  if (worked_job_) {
    worked_job_->fail(
        concat("shard ", options_.shard, " works for another start of the job: this one ends"));
    // Once the gate has been held exclusively, all accepted requests are in the workers' queues.
    const ExclusiveLock gate(worked_job_->gate);
    run_on_workers([](ShardWorker& worker) { worker.set_job(nullptr); });
  }
  worked_job_.reset();  // before memory for the next job is allocated
  auto job = std::make_shared<RunningJob>(begin.job, tables_, seed_, layout_,
                                          options_.enforce_bound, [this] {
                                            for (auto& worker : workers_) worker->wake();
                                          });
  load_rows(begin, *job);
  worked_job_ = job;
  run_on_workers([&](ShardWorker& worker) { worker.set_job(job.get()); });
  log_info("shard {}: job begins at step {} with {} rows", options_.shard, begin.job.first_step,
           job->stats().rows);
}

void Shard::load_rows(const Begin& begin, RunningJob& job) const {
  for (const table::RowFile& file : begin.job.row_files) {
    table::load_rows(file, *job.tables[static_cast<std::size_t>(file.table)],
                     {.shard = layout_.shard,
                      .num_shards = layout_.num_shards,
                      .last_step = begin.job.first_step - 1,
                      .is_abandoned = &begin.is_abandoned});
  }
}

// -------------------------------------------------------------------------------------- snapshots

void Shard::begin_snapshot(const std::shared_ptr<RunningJob>& job, Call& call) {
  const std::int64_t step = call->tag().step;
  const MutexLock lock(job->snapshot_mutex);
  if (job->snapshot && is_same(job->snapshot->begin_tag, call->tag())) {
    if (job->snapshot->is_taken) return call->reply({});
    job->snapshot->begin_calls.push_back(std::move(call));
    return;
  }
  // A rank that has given up a checkpoint which took too long may come with the next one.
  const bool is_writing = job->snapshot && job->snapshot->is_writing;
  if (is_writing) return wait_for_files(*job->snapshot, call);
  if (job->snapshot && !job->snapshot->is_taken) {
    invalid(concat("a snapshot of step ", step, " before that of step ", job->snapshot->step,
                   " has begun"));
  }
  job->snapshot.reset();
  job->snapshot = std::make_unique<RunningJob::Snapshot>();
  job->snapshot->step = step;
  job->snapshot->begin_tag = call->tag();
  job->snapshot->begin_calls.push_back(std::move(call));
  const auto take = [job] {
    const MutexLock inner(job->snapshot_mutex);
    RunningJob::Snapshot& snapshot = *job->snapshot;
    std::string error;
    try {
      const std::int64_t applied = job->applied();
      if (applied != snapshot.step && !job->config.async && !job->config.is_cached) {
        invalid(concat("a snapshot of step ", snapshot.step, ", the rows are of step ", applied));
      }
      // Updates of a step get its number as their mark, but async and puts may be ahead of it.
      const std::int64_t highest = job->highest_mark;
      // Initial rows of the job have 1, even before its first step.
      const std::int64_t least = job->config.async ? 1 : std::max<std::int64_t>(1, snapshot.step);
      const std::int64_t mark = std::max(highest, least);
      for (auto& table : job->tables) {
        snapshot.tables.push_back(std::make_unique<table::TableSnapshot>(*table, mark));
      }
      snapshot.is_taken = true;
      job->snapshot_mark = mark;
    } catch (const std::exception& failure) {
      error = failure.what();
    }
    answer_all(snapshot.begin_calls, error, {});
    if (!snapshot.is_taken) job->snapshot.reset();
  };
  const auto meeting = std::make_shared<Meeting>(workers_.size());
  const MutexLock inner(action_mutex_);
  for (auto& worker : workers_) {
    worker->run([job, meeting, take](ShardWorker& self) {
      std::int64_t seen = job->highest_mark;
      while (seen < self.highest_mark() &&
             !job->highest_mark.compare_exchange_weak(seen, self.highest_mark())) {
      }
      meeting->meet(take);
      self.raise_mark(job->snapshot_mark);
    });
  }
}

void Shard::write_snapshot(const std::shared_ptr<RunningJob>& job, Call& call) {
  const std::span<const std::byte> body = call->payload().subspan(sizeof(RequestPrefix));
  const std::string directory(reinterpret_cast<const char*>(body.data()), body.size());
  const MutexLock lock(job->snapshot_mutex);
  RunningJob::Snapshot* snapshot = job->snapshot.get();
  if (snapshot == nullptr || !snapshot->is_taken) invalid("no snapshot has begun");
  const bool is_repeated = is_same(snapshot->write_tag, call->tag());
  if (is_repeated && snapshot->is_written) {
    snapshot->write_calls.push_back(std::move(call));
    return answer_all(snapshot->write_calls, snapshot->error, snapshot->files);
  }
  if (!is_repeated && (snapshot->is_writing || snapshot->is_written)) {
    invalid(concat("the snapshot of step ", snapshot->step, " is written once"));
  }
  snapshot->write_calls.push_back(std::move(call));
  if (is_repeated) return;
  snapshot->write_tag = snapshot->write_calls.back()->tag();
  snapshot->is_writing = true;
  control_.push([this, job, snapshot, directory] {  // it stays while is_writing
    begin_snapshots(job, write_files(*job, *snapshot, directory));
  });
}

/// Returns the calls that have waited for it.
std::vector<Shard::Call> Shard::write_files(RunningJob& job,
                                            RunningJob::Snapshot& snapshot,
                                            const std::string& directory) {
  std::vector<SnapshotFile> files;
  std::string error;
  try {
    for (std::size_t t = 0; t < snapshot.tables.size(); ++t) {
      SnapshotFile& file = files.emplace_back();
      file.table = static_cast<std::int32_t>(t);
      file.name = concat("table-", t, ".shard-", options_.shard, ".bin");
      file.row_bytes = job.tables[t]->row_bytes();
      FileWriter writer(concat(directory, "/", file.name));
      file.rows = snapshot.tables[t]->write([&](std::span<const std::byte> rows) {
        if (job.is_abandoned || job.has_failed()) {
          throw Error(ErrorCode::kUnavailable, "the job has ended");
        }
        writer.write(rows);
      });
      writer.finish();
      file.bytes = writer.bytes_written();
      file.xxh3 = to_hex(writer.checksum());
      snapshot.tables[t].reset();  // no more copying aside
    }
    fsync_directory(directory);
  } catch (const std::exception& failure) {
    error = concat("shard ", options_.shard, ": ", failure.what());
  }
  snapshot.tables.clear();
  const MutexLock lock(job.snapshot_mutex);
  snapshot.is_writing = false;
  snapshot.is_written = true;
  snapshot.error = error;
  snapshot.files = to_json(files);
  answer_all(snapshot.write_calls, error, snapshot.files);
  return std::move(snapshot.next_calls);
}

void Shard::begin_snapshots(const std::shared_ptr<RunningJob>& job, std::vector<Call> calls) {
  for (Call& call : calls) {
    try {
      const SharedLock gate(job->gate);
      job->throw_if_failed();
      begin_snapshot(job, call);
    } catch (const std::exception& failure) {
      if (call) call->fail(failure.what());
    }
  }
}

}  // namespace satrap::ps
