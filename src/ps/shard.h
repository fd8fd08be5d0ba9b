#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "satrap/core/bounded_queue.h"
#include "satrap/core/mutex.h"
#include "satrap/net/server.h"
#include "satrap/ps/shard_server.h"
#include "satrap/table/table_spec.h"
#include "src/ps/running_job.h"
#include "src/ps/shard_messages.h"
#include "src/ps/shard_worker.h"

namespace satrap::ps {

/// A shard without its transport: accepts requests, checks everything in them, and divides them
/// among workers. An invalid request is answered with its error and changes nothing.
class Shard {
 public:
  Shard(std::vector<table::TableSpec> tables, std::uint64_t seed, ShardServerOptions options);
  ~Shard();  // ends the job; joins
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  /// Answers the call or keeps it. An exception becomes the answer. Never waits for another
  /// request; from any thread.
  void handle(std::unique_ptr<net::ServerCall>& call);

 private:
  /// A begin, from the request to its answer, which repeated requests get too. Guarded by mutex_.
  struct Begin {
    ShardJob job;
    net::RequestTag tag;
    bool is_done = false;
    std::string error;
    std::vector<std::unique_ptr<net::ServerCall>> calls;
    std::atomic<bool> is_abandoned = false;
  };
  using Call = std::unique_ptr<net::ServerCall>;

  void begin(Call& call);
  void join(Call& call);
  void pull(RunningJob& job, const RequestPrefix& prefix, Call& call);
  void repeat_pull(RunningJob& job, OpenStep& step, std::span<const Key> keys, Call& call);
  void push(RunningJob& job, const RequestPrefix& prefix, Call& call);
  void end_pulls(RunningJob& job, Call& call);
  void look_up(RunningJob& job, const RequestPrefix& prefix, Call& call);
  void fetch(Call& call);
  void put(RunningJob& job, const RequestPrefix& prefix, Call& call);
  void put_dense(RunningJob& job, Call& call);
  void pull_dense(RunningJob& job, const RequestPrefix& prefix, Call& call);
  void push_dense(RunningJob& job, const RequestPrefix& prefix, Call& call);
  void begin_snapshot(const std::shared_ptr<RunningJob>& job, Call& call);
  void write_snapshot(const std::shared_ptr<RunningJob>& job, Call& call);

  void check_tables(const std::vector<std::string>& lines) const;
  void check_job(const ShardJob& job) const;
  std::shared_ptr<RunningJob> job_of(std::uint64_t session);
  void send_to_workers(const std::shared_ptr<RowRequest>& request);
  /// Waits for all of them. Throws what one of them has thrown.
  void run_on_workers(const std::function<void(ShardWorker&)>& action);

  // On the thread for long requests.
  void run_control();
  void start_job(Begin& begin);
  void load_rows(const Begin& begin, RunningJob& job) const;
  std::vector<Call> write_files(RunningJob& job,
                                RunningJob::Snapshot& snapshot,
                                const std::string& directory);
  void begin_snapshots(const std::shared_ptr<RunningJob>& job, std::vector<Call> calls);

  const std::vector<table::TableSpec> tables_;
  const std::uint64_t seed_;
  const ShardServerOptions options_;
  const std::vector<std::string> table_lines_;
  const ShardLayout layout_, row_layout_;  // of weights, of whole rows

  Mutex mutex_;
  std::shared_ptr<RunningJob> job_ SATRAP_GUARDED_BY(mutex_);       // the job of requests
  std::shared_ptr<Begin> begin_ SATRAP_GUARDED_BY(mutex_);          // the last one
  std::set<std::uint64_t> old_sessions_ SATRAP_GUARDED_BY(mutex_);  // always refused

  Mutex action_mutex_;  // all workers get actions in the same order
  std::vector<std::unique_ptr<ShardWorker>> workers_;
  std::shared_ptr<RunningJob> worked_job_;  // the workers'; of the control thread
  // Has room for more than all clients may have unanswered: push() never waits.
  BoundedQueue<std::function<void()>> control_{std::size_t{1} << 16};
  std::thread control_thread_;
};

}  // namespace satrap::ps
