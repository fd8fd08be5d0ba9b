#include "src/ps/running_job.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/core/resource.h"

namespace satrap::ps {
namespace {

constexpr std::int64_t kHistogramWithoutBound = 256;

void write_prefix(std::span<std::byte> reply, std::int64_t read_version, double num_updates = 0.0) {
  const ReplyPrefix prefix{.read_version = read_version, .num_updates = num_updates, .padding = {}};
  std::memcpy(reply.data(), &prefix, sizeof(prefix));
}

template <class T>
void lower(std::atomic<T>& value, T to) {
  T seen = value.load(std::memory_order_relaxed);
  while (to < seen && !value.compare_exchange_weak(seen, to)) {
  }
}

}  // namespace

void answer_with_copy(net::ServerCall& call, std::span<const std::byte> answer) {
  try {
    call.reply(answer);
  } catch (const std::exception& error) {
    if (!call.is_answered()) call.fail(error.what());
  }
}

RunningJob::RunningJob(ShardJob config_in,
                       const std::vector<table::TableSpec>& specs,
                       std::uint64_t seed,
                       ShardLayout layout_in,
                       bool enforce_bound_in,
                       std::function<void()> on_failure)
    : config(std::move(config_in)),
      layout(std::move(layout_in)),
      enforce_bound(enforce_bound_in),
      on_failure_(std::move(on_failure)),
      applied_(static_cast<std::size_t>(layout.num_workers)) {
  for (const table::TableSpec& spec : specs) {
    tables.push_back(std::make_unique<table::Table>(spec, seed, layout.num_shards));
  }
  for (auto& applied : applied_) applied = config.first_step - 1;
  const bool is_bound = !config.async && enforce_bound;
  for (std::int64_t r = 0; r < config.num_ranks; ++r) {
    auto& rank = *ranks_.emplace_back(std::make_unique<Rank>());
    rank.last_pulled = rank.last_pushed = config.first_step - 1;
    rank.end_of_pulls = std::numeric_limits<std::int64_t>::max();
    rank.open.resize(static_cast<std::size_t>(Limits::open_steps(config)));
    rank.staleness_histogram.resize(
        static_cast<std::size_t>(is_bound ? config.staleness.max() + 1 : kHistogramWithoutBound));
  }
}

RunningJob::Rank& RunningJob::rank_of(const net::RequestTag& tag) {
  if (tag.rank < 0 || tag.rank >= config.num_ranks) {
    throw Error(ErrorCode::kInvalidData,
                concat("rank ", tag.rank, " of a job of ", config.num_ranks));
  }
  return *ranks_[static_cast<std::size_t>(tag.rank)];
}

OpenStep& RunningJob::open_step(Rank& rank, std::int64_t step) {
  auto& step_at = rank.open[static_cast<std::size_t>(step) % rank.open.size()];
  if (!step_at) step_at = std::make_unique<OpenStep>();
  return *step_at;
}

// -------------------------------------------------------------------------------- the end of it

void RunningJob::fail(const std::string& message) {
  std::vector<Waiter> waiters;
  {
    const MutexLock lock(mutex_);
    if (has_failed_) return;
    failure_ = message;
    has_failed_ = true;
    waiters = std::exchange(waiters_, {});
  }
  for (Waiter& waiter : waiters) waiter.call->fail(message);
  on_failure_();
}

std::string RunningJob::failure() {
  const MutexLock lock(mutex_);
  return failure_;
}

void RunningJob::throw_if_failed() {
  if (has_failed_) throw Error(ErrorCode::kUnavailable, failure());
}

// ----------------------------------------------------------------------------- workers' reports

/// In memory of a step whose push has come: few are open at a time, and an answer may be large.
void RunningJob::keep_answer(Rank& rank, OpenStep& step, std::span<const std::byte> reply) {
  {
    const MutexLock lock(rank.mutex);
    if (!rank.spare_answers.empty()) {
      step.kept_answer = std::move(rank.spare_answers.back());
      rank.spare_answers.pop_back();
    }
  }
  step.kept_answer.assign(reply.begin(), reply.end());
}

void RunningJob::release_answer(Rank& rank, OpenStep& step) {
  if (keeps_answers()) rank.spare_answers.push_back(std::move(step.kept_answer));
}

void RunningJob::finish_part_of_pull(OpenStep& step, std::int64_t read_version) {
  lower(step.read_version, read_version);
  if (step.parts_left.fetch_sub(1) != 1) return;
  const std::int64_t version = step.read_version;
  const std::span<std::byte> reply = step.reply;
  Rank& rank = *ranks_[static_cast<std::size_t>(step.rank)];
  if (!has_failed_) {
    write_prefix(reply, version);
    if (keeps_answers()) keep_answer(rank, step, reply);
  }
  std::unique_ptr<net::ServerCall> call, repeated;
  {
    const MutexLock lock(rank.mutex);
    call = std::move(step.pull_call);
    repeated = std::move(step.repeated_call);
    if (!has_failed_) {
      auto& histogram = rank.staleness_histogram;
      const std::int64_t last = std::ssize(histogram) - 1;
      ++histogram[static_cast<std::size_t>(
          std::clamp<std::int64_t>(step.step - 1 - version, 0, last))];
      step.state = OpenStep::State::kPulled;
    }
  }
  if (has_failed_) {
    call->fail(failure());
    if (repeated) repeated->fail(failure());
    return;
  }
  if (repeated) answer_with_copy(*repeated, reply);
  call->send();
}

void RunningJob::finish_part_of_push(OpenStep& step) {
  if (step.parts_left.fetch_sub(1) != 1) return;
  std::unique_ptr<net::ServerCall> call;  // its memory returns to the transport, outside the lock
  Rank& rank = *ranks_[static_cast<std::size_t>(step.rank)];
  const MutexLock lock(rank.mutex);
  call = std::move(step.push_call);
  rank.held_pushes -= call != nullptr;
  step.state = OpenStep::State::kFree;
}

void RunningJob::finish_part_of_request(RowRequest& request, std::int64_t read_version) {
  lower(request.read_version, read_version);
  if (request.parts_left.fetch_sub(1) != 1) return;
  if (has_failed_) {
    request.call->fail(failure());
    return;
  }
  if (request.kind == RowRequest::Kind::kPut) return request.call->reply({});
  write_prefix(request.reply, request.read_version);
  request.call->send();
}

void RunningJob::finish_part_of_dense(DenseRequest& request, double num_updates) {
  lower(request.num_updates, num_updates);
  if (request.parts_left.fetch_sub(1) != 1) return;
  if (request.gradient != nullptr) {
    Rank& rank = *ranks_[static_cast<std::size_t>(request.rank)];
    const MutexLock lock(rank.mutex);
    --rank.dense_pushes_under_way;
  }
  if (request.call->is_answered()) return;
  if (has_failed_) {
    request.call->fail(failure());
  } else if (request.gradient != nullptr) {
    request.call->reply({});
  } else {
    write_prefix(request.reply, 0, request.num_updates);
    request.call->send();
  }
}

void RunningJob::note_applied(std::int64_t worker, std::int64_t step) {
  applied_[static_cast<std::size_t>(worker)] = step;
  if (num_waiters_ > 0) answer_waiters();
}

// ------------------------------------------------------------------------------------- progress

std::int64_t RunningJob::applied() const {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const auto& applied : applied_) least = std::min(least, applied.load());
  return least;
}

void RunningJob::wait_applied(std::int64_t step, std::unique_ptr<net::ServerCall>& call) {
  {
    const MutexLock lock(mutex_);
    if (has_failed_) throw Error(ErrorCode::kUnavailable, failure_);
    waiters_.push_back({step, std::move(call)});
    ++num_waiters_;  // before applied() is read: either a worker sees the waiter or this thread
                     // sees the step
  }
  answer_waiters();
}

void RunningJob::answer_waiters() {
  std::vector<std::unique_ptr<net::ServerCall>> done;
  {
    const MutexLock lock(mutex_);
    const std::int64_t step = applied();
    std::erase_if(waiters_, [&](Waiter& waiter) {
      if (waiter.step > step) return false;
      done.push_back(std::move(waiter.call));
      --num_waiters_;
      return true;
    });
  }
  for (auto& call : done) call->reply({});
}

ShardStats RunningJob::stats() {
  ShardStats stats;
  for (const auto& table : tables) {
    stats.rows += table->num_rows();
    stats.table_bytes += table->resident_bytes();
  }
  stats.resident_bytes = resident_bytes();
  stats.cpu_seconds = cpu_seconds();
  stats.applied_step = applied();
  stats.repeated_requests = num_repeated;
  for (const auto& rank : ranks_) {
    const MutexLock lock(rank->mutex);
    stats.staleness_histogram.resize(rank->staleness_histogram.size());
    for (std::size_t s = 0; s < rank->staleness_histogram.size(); ++s) {
      stats.staleness_histogram[s] += rank->staleness_histogram[s];
    }
  }
  return stats;
}

bool RunningJob::has_limits() const {
  return std::ranges::any_of(tables, [](const auto& table) {
    return table->spec().limits.any() || table->spec().limits.admit_after > 1;
  });
}

}  // namespace satrap::ps
