#include "src/ps/shard_worker.h"

#include <algorithm>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/core/thread_group.h"
#include "satrap/table/whole_rows.h"

namespace satrap::ps {
namespace {

/// Keys and rows of one worker's part of a table.
template <class T>
auto part_of(std::span<T> all, DividedKeys::Range range) {
  return all.subspan(index(range.begin), index(range.end - range.begin));
}

}  // namespace

ShardWorker::ShardWorker(std::int64_t number, std::function<void()> before_request)
    : number_(number),
      before_request_(std::move(before_request)),
      thread_(start_thread(concat("ps-work-", number), [this] { work(); })) {}

ShardWorker::~ShardWorker() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
    changed_.notify_one();
  }
  thread_.join();
}

void ShardWorker::add(Item item) {
  const MutexLock lock(mutex_);
  inbox_.push_back(std::move(item));
  changed_.notify_one();
}

void ShardWorker::pull(OpenStep& step) { add({.kind = Kind::kPull, .step = &step}); }
void ShardWorker::push(OpenStep& step) { add({.kind = Kind::kPush, .step = &step}); }
void ShardWorker::end_pulls(std::int64_t rank, std::int64_t step) {
  add({.kind = Kind::kEndPulls, .rank = rank, .number = step});
}
void ShardWorker::work_on(std::shared_ptr<RowRequest> request) {
  add({.kind = Kind::kRows, .request = std::move(request)});
}
void ShardWorker::dense(std::shared_ptr<DenseRequest> request) {
  add({.kind = Kind::kDense, .dense = std::move(request)});
}
void ShardWorker::run(std::function<void(ShardWorker&)> action) {
  add({.kind = Kind::kAction, .action = std::move(action)});
}
void ShardWorker::wake() { add({}); }

// ---------------------------------------------------------------------------------- the thread

void ShardWorker::work() {
  std::vector<Item> items;
  for (;;) {
    {
      const MutexLock lock(mutex_);
      while (!stop_ && inbox_.empty()) changed_.wait(mutex_);
      if (inbox_.empty()) return;
      std::swap(items, inbox_);
    }
    for (Item& item : items) {
      try {
        take(item);
        advance();
      } catch (const std::exception& error) {
        if (job_ == nullptr) {
          log_error("shard: {}", error.what());
        } else {
          log_error("shard: the job ends: {}", error.what());
          job_->fail(error.what());
          end_what_waits();
        }
      }
    }
    items.clear();
  }
}

void ShardWorker::take(Item& item) {
  switch (item.kind) {
    case Kind::kPull:
      waiting_.push_back(item.step);
      return;
    case Kind::kPush:
      if (job_->has_failed()) return job_->finish_part_of_push(*item.step);
      if (job_->config.async) {
        OpenStep& step = *item.step;
        const std::int64_t rank = step.rank, number = step.step;
        apply({&item.step, 1});
        clock_->note_pushed(rank, number);
        job_->note_applied(number_, clock_->applied());
      } else {
        clock_->note_pushed(item.step->rank, item.step->step);
        pushed(item.step->rank, item.step->step) = item.step;
      }
      return;
    case Kind::kEndPulls:
      if (!job_->has_failed()) clock_->note_last_read(item.rank, item.number);
      return;
    case Kind::kRows:
      work_on_rows(*item.request);
      item.request.reset();
      return;
    case Kind::kDense:
      work_on_dense(*item.dense);
      item.dense.reset();
      return;
    case Kind::kAction:
      item.action(*this);
      return;
    case Kind::kWake:
      return;
  }
}

void ShardWorker::set_job(RunningJob* job) {
  if (job_ != nullptr) end_what_waits();
  job_ = nullptr;  // until all is there for it
  clock_.reset();
  least_mark_ = highest_mark_ = 0;
  if (job == nullptr) return;
  const ShardJob& config = job->config;
  clock_.emplace(table::StepClock::Rules{.num_ranks = config.num_ranks,
                                         .async = config.async,
                                         .staleness = config.staleness,
                                         .deterministic = config.deterministic,
                                         .first_step = config.first_step,
                                         .enforce_bound = job->enforce_bound,
                                         .in_step_order = job->has_limits()});
  highest_mark_ = config.first_step - 1;
  pushed_.assign(index(config.num_ranks * RunningJob::Limits::open_steps(config)), nullptr);
  job_ = job;
}

OpenStep*& ShardWorker::pushed(std::int64_t rank, std::int64_t step) {
  const std::int64_t size = RunningJob::Limits::open_steps(job_->config);
  return pushed_[index(rank * size + step % size)];
}

/// Does everything that the clock allows. A due update comes first, because it makes reads newer;
/// then the waiting pulls, so that ranks can continue.
void ShardWorker::advance() {
  if (job_ == nullptr) return;
  if (job_->has_failed()) return end_what_waits();
  for (bool goes_on = true; goes_on;) {
    goes_on = clock_->may_apply();
    if (goes_on) apply_next();
    for (std::size_t i = 0; i < waiting_.size();) {
      if (!clock_->may_read(waiting_[i]->step, waiting_[i]->least_version)) {
        ++i;
        continue;
      }
      OpenStep* const step = waiting_[i];
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
      read(*step);
      goes_on = true;
    }
  }
}

void ShardWorker::end_what_waits() {
  for (OpenStep* step : std::exchange(waiting_, {})) {
    job_->finish_part_of_pull(*step, clock_->applied());
  }
}

std::int64_t ShardWorker::first_partition(std::int64_t worker) const {
  return worker * table::kPartitions / job_->layout.num_workers;
}

void ShardWorker::read(OpenStep& step) {
  const std::int64_t rank = step.rank, number = step.step;
  try {
    if (before_request_) before_request_();
    for (std::int64_t t = 0; t < job_->layout.num_tables(); ++t) {
      const DividedKeys::Range range = step.keys.part(t, number_);
      table::Table& table = *job_->tables[index(t)];
      for (std::int64_t p = first_partition(number_); p < first_partition(number_ + 1); ++p) {
        table.begin_step(p, number);
      }
      if (range.begin == range.end) continue;
      const std::int64_t value = step.keys.value_begin(t, range.begin, table.spec().dim);
      std::byte* const out =
          step.reply.data() + sizeof(ReplyPrefix) + bytes_of(step.pull_encoding) * value;
      const std::span<const Key> keys = part_of(step.keys.keys(), range);
      const std::span<table::RowPointer> rows = part_of(std::span(step.rows), range);
      rows_.read(table, number, keys, rows, step.pull_encoding, out);
    }
    clock_->note_read(rank, number);
  } catch (const std::exception& error) {
    job_->fail(concat("pull of step ", number, ": ", error.what()));
  }
  job_->finish_part_of_pull(step, clock_->applied());
}

void ShardWorker::work_on_rows(RowRequest& request) {
  using enum RowRequest::Kind;
  const std::int64_t next_step = clock_->applied() + 1;  // lower bound of the steps that use rows
  try {
    if (before_request_) before_request_();
    for (std::int64_t t = 0; t < job_->layout.num_tables(); ++t) {
      const DividedKeys::Range range = request.keys.part(t, number_);
      if (range.begin == range.end) continue;
      table::Table& table = *job_->tables[index(t)];
      const std::span<const Key> keys = part_of(request.keys.keys(), range);
      const bool is_whole = request.kind != kLookup;
      const std::int64_t value = request.keys.value_begin(
          t, range.begin, is_whole ? table.row_bytes() / kFloatBytes : table.spec().dim);
      switch (request.kind) {
        case kLookup:
          rows_.look_up(
              table, keys, request.encoding,
              request.reply.data() + sizeof(ReplyPrefix) + bytes_of(request.encoding) * value);
          break;
        case kFetch: {
          std::byte* const to = request.reply.data() + sizeof(ReplyPrefix) + value * kFloatBytes;
          table::fetch_rows(table, next_step, keys,
                            [&](std::size_t i) { return to + i * index(table.row_bytes()); });
          break;
        }
        case kPut: {
          const std::byte* const from = request.rows + value * kFloatBytes;
          const std::int64_t last =
              table::put_rows(table, job_->layout.num_shards, next_step, keys,
                              [&](std::size_t i) { return from + i * index(table.row_bytes()); });
          highest_mark_ = std::max(highest_mark_, last);
          break;
        }
      }
    }
  } catch (const std::exception& error) {
    constexpr const char* kNames[] = {"lookup", "fetch", "put"};
    job_->fail(concat(kNames[static_cast<std::size_t>(request.kind)], ": ", error.what()));
  }
  job_->finish_part_of_request(request, clock_->applied());
}

void ShardWorker::work_on_dense(DenseRequest& request) {
  DensePart& part = *request.part;
  try {
    if (before_request_) before_request_();
    if (request.gradient != nullptr) {
      part.update(number_, request.gradient, request.scale, request.lr);
    } else {
      part.read(number_, request.with_state,
                reinterpret_cast<float*>(request.reply.data() + sizeof(ReplyPrefix)));
    }
  } catch (const std::exception& error) {
    job_->fail(concat("dense parameters: ", error.what()));
  }
  job_->finish_part_of_dense(request, part.num_updates(number_));
}

void ShardWorker::apply_next() {
  const std::int64_t step = clock_->applied() + 1;
  due_.clear();
  for (std::int64_t rank = 0; rank < job_->config.num_ranks; ++rank) {
    due_.push_back(std::exchange(pushed(rank, step), nullptr));
  }
  apply(due_);
  clock_->note_applied();
  job_->note_applied(number_, step);
}

/// Updates the rows once with the gradients that ranks have pushed for the same step.
void ShardWorker::apply(std::span<OpenStep* const> steps) {
  const std::int64_t number = steps.front()->step;
  const std::int64_t mark = std::max(number, least_mark_);
  try {
    if (before_request_) before_request_();
    for (std::int64_t t = 0; t < job_->layout.num_tables(); ++t) {
      table::Table& table = *job_->tables[index(t)];
      gradients_.clear();
      for (OpenStep* step : steps) {
        const DividedKeys::Range range = step->keys.part(t, number_);
        if (range.begin == range.end) continue;
        const auto keys = part_of(step->keys.keys(), range);
        const auto rows = part_of(std::span<const table::RowPointer>(step->rows), range);
        table.apply_sightings(mark, keys, rows);
        if (step->skip) {
          rows_.skip(table, job_->layout.num_shards, keys, rows, mark);
          highest_mark_ = std::max(highest_mark_, mark);
          continue;
        }
        const std::int64_t value = step->keys.value_begin(t, range.begin, table.spec().dim);
        gradients_.push_back({part_of(step->keys.keys(), range),
                              part_of(std::span<const table::RowPointer>(step->rows), range),
                              step->push_encoding,
                              step->gradients + bytes_of(step->push_encoding) * value});
      }
      if (!gradients_.empty()) {
        rows_.update(table, job_->layout.num_shards, gradients_, number, mark);
        highest_mark_ = std::max(highest_mark_, mark);
      }
      table.note_applied(number);
    }
  } catch (const std::exception& error) {
    job_->fail(concat("update of step ", number, ": ", error.what()));
  }
  for (OpenStep* step : steps) job_->finish_part_of_push(*step);
}

}  // namespace satrap::ps
