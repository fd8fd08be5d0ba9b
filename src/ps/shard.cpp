#include "src/ps/shard.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/core/mutex.h"
#include "satrap/core/thread_group.h"
#include "satrap/net/net_error.h"
#include "src/ps/shard_request.h"

namespace satrap::ps {
namespace {

using State = OpenStep::State;

RequestPrefix prefix_of(const net::ServerCall& call) {
  RequestPrefix prefix;
  if (call.payload().size() < sizeof(prefix)) {
    refuse("a request of ", call.payload().size(), " bytes, the shortest has ", sizeof(prefix));
  }
  std::memcpy(&prefix, call.payload().data(), sizeof(prefix));
  if (prefix.encoding > FloatType::kFp16) {
    refuse("unknown encoding ", static_cast<int>(prefix.encoding));
  }
  return prefix;
}

std::int64_t reply_bytes(FloatType encoding, const DividedKeys& keys) {
  return static_cast<std::int64_t>(sizeof(ReplyPrefix)) + bytes_of(encoding) * keys.num_values();
}

ShardLayout layout_of(const std::vector<table::TableSpec>& tables,
                      const ShardServerOptions& options) {
  ShardLayout layout{options.shard, options.num_shards, options.num_workers};
  for (const table::TableSpec& table : tables) layout.dims.push_back(table.dim);
  return layout;
}

/// The layout of whole rows: their size in floats replaces the dim.
ShardLayout row_layout_of(const std::vector<table::TableSpec>& tables, ShardLayout layout) {
  layout.dims.clear();
  for (const table::TableSpec& table : tables) {
    layout.dims.push_back(table.layout().row_bytes / static_cast<std::int64_t>(sizeof(float)));
  }
  return layout;
}

}  // namespace

Shard::Shard(std::vector<table::TableSpec> tables, std::uint64_t seed, ShardServerOptions options)
    : tables_(std::move(tables)),
      seed_(seed),
      options_(std::move(options)),
      table_lines_(describe_tables(tables_, seed_, options_.num_shards)),
      layout_(layout_of(tables_, options_)),
      row_layout_(row_layout_of(tables_, layout_)) {
  SATRAP_CHECK(options_.shard >= 0 && options_.shard < options_.num_shards, "shard ",
               options_.shard, " of ", options_.num_shards);
  SATRAP_CHECK(options_.num_workers >= 1 && options_.num_workers <= table::kPartitions,
               options_.num_workers, " workers for ", table::kPartitions, " partitions");
  for (std::int64_t w = 0; w < options_.num_workers; ++w) {
    workers_.push_back(std::make_unique<ShardWorker>(w, options_.before_request));
  }
  control_thread_ = start_thread("ps-control", [this] { run_control(); });
}

Shard::~Shard() {
  {
    const MutexLock lock(mutex_);
    if (begin_) begin_->is_abandoned = true;
    if (job_) job_->is_abandoned = true;
  }
  control_.close();
  control_thread_.join();
  if (worked_job_) {
    worked_job_->fail(concat("shard ", options_.shard, " has ended"));
    run_on_workers([](ShardWorker& worker) { worker.set_job(nullptr); });
  }
  workers_.clear();
}

void Shard::handle(Call& call) {
  const auto op = static_cast<ShardOp>(call->op());
  if (op == ShardOp::kBegin) return begin(call);
  if (op == ShardOp::kJoin) return join(call);
  if (op > ShardOp::kPut || op < ShardOp::kBegin) refuse("unknown operation ", call->op());
  const RequestPrefix prefix = prefix_of(*call);
  const std::shared_ptr<RunningJob> job = job_of(prefix.session);
  const SharedLock gate(job->gate);
  job->throw_if_failed();
  job->rank_of(call->tag());
  switch (op) {
    case ShardOp::kPull:
      return pull(*job, prefix, call);
    case ShardOp::kPush:
      return push(*job, prefix, call);
    case ShardOp::kEndPulls:
      return end_pulls(*job, call);
    case ShardOp::kWaitApplied:
      return job->wait_applied(call->tag().step, call);
    case ShardOp::kLookup:
      return look_up(*job, prefix, call);
    case ShardOp::kBeginSnapshot:
      return begin_snapshot(job, call);
    case ShardOp::kWriteSnapshot:
      return write_snapshot(job, call);
    case ShardOp::kStats: {
      const std::string text = to_json(job->stats());
      return call->reply(std::as_bytes(std::span(text)));
    }
    case ShardOp::kPutDense:
      return put_dense(*job, call);
    case ShardOp::kPullDense:
      return pull_dense(*job, prefix, call);
    case ShardOp::kPushDense:
      return push_dense(*job, prefix, call);
    case ShardOp::kFetch:
      return fetch(call);
    case ShardOp::kPut:
      return put(*job, prefix, call);
    case ShardOp::kBegin:
    case ShardOp::kJoin:
      return;
  }
}

std::shared_ptr<RunningJob> Shard::job_of(std::uint64_t session) {
  const MutexLock lock(mutex_);
  if (job_ && job_->config.session == session) return job_;
  if (!begin_) {
    throw Error(
        ErrorCode::kUnavailable,
        concat("shard ", options_.shard, " has no job: it was restarted and has lost its rows"));
  }
  if (begin_->job.session == session) {
    throw Error(ErrorCode::kUnavailable, concat("shard ", options_.shard,
                                                begin_->is_done ? " could not begin the job: "
                                                                : " is still beginning the job",
                                                begin_->error));
  }
  throw Error(ErrorCode::kUnavailable, concat("shard ", options_.shard,
                                              " works for another start "
                                              "of the job: this one has been replaced"));
}

void Shard::run_on_workers(const std::function<void(ShardWorker&)>& action) {
  struct Done {
    explicit Done(std::size_t count) : left(count) {}

    Mutex mutex;
    CondVar changed;
    std::size_t left SATRAP_GUARDED_BY(mutex);
    std::exception_ptr error SATRAP_GUARDED_BY(mutex);
  };
  const auto done = std::make_shared<Done>(workers_.size());
  {
    const MutexLock lock(action_mutex_);
    for (auto& worker : workers_) {
      worker->run([done, &action](ShardWorker& self) {
        std::exception_ptr error;
        try {
          action(self);
        } catch (...) {
          error = std::current_exception();
        }
        const MutexLock inner(done->mutex);
        if (error) done->error = error;
        --done->left;
        done->changed.notify_one();
      });
    }
  }
  const MutexLock lock(done->mutex);
  while (done->left > 0) done->changed.wait(done->mutex);
  if (done->error) std::rethrow_exception(done->error);
}

void Shard::run_control() {
  while (const auto task = control_.pop()) (*task)();
}

// ---------------------------------------------------------------------------------- pull and push

void Shard::pull(RunningJob& job, const RequestPrefix& prefix, Call& call) {
  const std::span<const Key> keys = keys_of(*call);
  const std::int64_t number = call->tag().step;
  RunningJob::Rank& rank = job.rank_of(call->tag());
  const MutexLock lock(rank.mutex);
  OpenStep& step = job.open_step(rank, std::max<std::int64_t>(number, 0));
  if (number <= rank.last_pulled) {
    ++job.num_repeated;
    if (number < job.config.first_step || step.step != number) {
      refuse("pull of step ", number, ", which is over");
    }
    return repeat_pull(job, step, keys, call);
  }
  if (number != rank.last_pulled + 1 || number > kMaxStep) {
    refuse("pull of step ", number, ", expected step ", rank.last_pulled + 1);
  }
  if (number > rank.end_of_pulls) {
    refuse("pull of step ", number, " after the last one, of step ", rank.end_of_pulls);
  }
  if (prefix.least_version >= number) {
    refuse("pull of step ", number, " that waits for the update of step ", prefix.least_version);
  }
  if (step.state != State::kFree) {
    refuse("pull of step ", number, ": ", rank.open.size(), " steps are open already");
  }
  step.keys.assign(layout_, keys);
  step.rows.resize(keys.size());
  step.reply = call->reply_space(reply_bytes(prefix.encoding, step.keys));
  step.rank = call->tag().rank;
  step.step = number;
  step.pull_encoding = prefix.encoding;
  // A later pull wants no older rows, so that the rank's pulls are answered in their order.
  step.least_version = rank.least_version = std::max(rank.least_version, prefix.least_version);
  step.read_version = std::numeric_limits<std::int64_t>::max();
  step.parts_left = layout_.num_workers;
  step.pull_call = std::move(call);
  step.state = State::kPulling;
  rank.last_pulled = number;
  for (auto& worker : workers_) worker->pull(step);
}

/// Holds the rank's mutex. The answer was lost, or is still pending.
void Shard::repeat_pull(RunningJob& job, OpenStep& step, std::span<const Key> keys, Call& call) {
  if (step.keys.keys().size() != keys.size() ||
      !std::equal(keys.begin(), keys.end(), step.keys.keys().begin())) {
    refuse("a second pull of step ", step.step, ", of other keys");
  }
  if (step.state == State::kPulling) {
    step.repeated_call = std::move(call);
  } else if (step.state != State::kPulled) {
    refuse("pull of step ", step.step, ", whose gradients have arrived");
  } else if (job.keeps_answers()) {
    call->reply(step.kept_answer);
  } else {
    auto request = std::make_shared<RowRequest>();
    request->keys = step.keys;
    request->encoding = step.pull_encoding;
    request->reply = call->reply_space(reply_bytes(step.pull_encoding, step.keys));
    request->call = std::move(call);
    send_to_workers(request);
  }
}

void Shard::look_up(RunningJob&, const RequestPrefix& prefix, Call& call) {
  auto request = std::make_shared<RowRequest>();
  request->keys.assign(layout_, keys_of(*call));
  request->encoding = prefix.encoding;
  request->reply = call->reply_space(reply_bytes(prefix.encoding, request->keys));
  request->call = std::move(call);
  send_to_workers(request);
}

void Shard::send_to_workers(const std::shared_ptr<RowRequest>& request) {
  request->read_version = std::numeric_limits<std::int64_t>::max();
  request->parts_left = layout_.num_workers;
  for (auto& worker : workers_) worker->work_on(request);
}

void Shard::push(RunningJob& job, const RequestPrefix& prefix, Call& call) {
  const std::int64_t number = call->tag().step;
  const std::span<const std::byte> body = body_of(*call);
  RunningJob::Rank& rank = job.rank_of(call->tag());
  const MutexLock lock(rank.mutex);
  if (number >= job.config.first_step && number <= rank.last_pushed) {
    ++job.num_repeated;
    return call->reply({});
  }
  if (number != rank.last_pushed + 1) {
    refuse("push of step ", number, ", expected step ", rank.last_pushed + 1);
  }
  OpenStep& step = job.open_step(rank, number);
  if (step.step != number || step.state != State::kPulled) {
    refuse("push of step ", number, ", whose pull has not been answered");
  }
  const bool skip = (prefix.flags & kSkip) != 0;
  const std::int64_t expected = skip ? 0 : bytes_of(prefix.encoding) * step.keys.num_values();
  if (std::ssize(body) != expected) {
    refuse("push of step ", number, ": ", body.size(), " bytes of gradients for ",
           step.keys.keys().size(), " keys, expected ", expected);
  }
  const bool is_held = !skip && rank.held_pushes < RunningJob::Limits::kHeldPushes;
  step.gradients = body.data();
  if (!is_held && !skip) {
    step.copied_gradients.assign(body.begin(), body.end());
    step.gradients = step.copied_gradients.data();
  }
  step.push_encoding = prefix.encoding;
  step.skip = skip;
  step.parts_left = layout_.num_workers;
  call->reply({});
  step.state = State::kPushed;
  job.release_answer(rank, step);
  rank.last_pushed = number;
  if (is_held) {
    ++rank.held_pushes;
    step.push_call = std::move(call);
  }
  for (auto& worker : workers_) worker->push(step);
}

void Shard::end_pulls(RunningJob& job, Call& call) {
  const std::int64_t number = call->tag().step;
  RunningJob::Rank& rank = job.rank_of(call->tag());
  const MutexLock lock(rank.mutex);
  if (number < rank.last_pulled) {
    refuse("pulls end with step ", number, ", step ", rank.last_pulled, " has been pulled");
  }
  if (number > rank.end_of_pulls) refuse("pulls have ended with step ", rank.end_of_pulls);
  rank.end_of_pulls = number;
  for (auto& worker : workers_) worker->end_pulls(call->tag().rank, number);
  call->reply({});
}

}  // namespace satrap::ps
