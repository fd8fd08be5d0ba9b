#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/backend/cuda_hooks.h"
#include "bench/backend/workload.h"
#include "satrap/core/error.h"

/// Times by events, and bandwidth as a share of a copy measured in the same run.
namespace satrap::bench {

/// Bytes per second of a copy within the device, read and write counted, best of ten of 1 GiB.
inline double copy_rate() {
  static const double rate = [] {
    constexpr std::int64_t kBytes = std::int64_t{1} << 30;
    const Memory from(device(), backend::Place::kDevice, kBytes, "a copy"),
        to(device(), backend::Place::kDevice, kBytes, "a copy");
    const backend::Stream stream(device());
    double best = 1e9;
    for (int i = 0; i < 10; ++i) {
      backend::Event start(device(), true), stop(device(), true);
      start.record(stream);
      device().copy(to.data(), from.data(), kBytes, stream);
      stop.record(stream);
      stop.wait_until_reached();
      best = std::min(best, backend::Event::milliseconds_between(start, stop));
    }
    return 2.0 * kBytes / (best * 1e-3);
  }();
  return rate;
}

/// Times of iterations, as counters of the benchmark, in microseconds per batch. Without a
/// GPU there are none.
class Times {
 public:
  void add(benchmark::State& state, double seconds, std::chrono::duration<double> host) {
    state.SetIterationTime(times_are_of_a_gpu() ? seconds : 0);
    microseconds_.push_back(seconds * 1e6);
    host_seconds_ += host.count();
  }
  void report(benchmark::State& state, double batches_per_iteration) {
    if (!times_are_of_a_gpu()) return state.SetLabel("not on a GPU: no times");
    std::ranges::sort(microseconds_);
    const auto quantile = [&](double share) {
      const double place = share * static_cast<double>(microseconds_.size() - 1);
      return microseconds_[static_cast<std::size_t>(place)] / batches_per_iteration;
    };
    state.counters["p10_us"] = quantile(0.1);
    state.counters["median_us"] = quantile(0.5);
    state.counters["p90_us"] = quantile(0.9);
    state.counters["host_us"] =
        host_seconds_ * 1e6 / static_cast<double>(state.iterations()) / batches_per_iteration;
  }

 private:
  std::vector<double> microseconds_;
  double host_seconds_ = 0;
};

/// Work that is queued call by call, or recorded once and queued as a whole.
class Queueing {
 public:
  Queueing(const Workload& workload, std::function<void()> work)
      : stream_(workload.stream), work_(std::move(work)) {
    work_();  // does not count: it loads the kernels, which a recording could not
    stream_.wait_until_idle();
    if (workload.axes.as_graph) recording_.emplace(device(), stream_, [&](auto) { work_(); });
  }
  void operator()() const {
    if (recording_) {
      recording_->queue(stream_);
    } else {
      work_();
    }
  }

 private:
  const backend::Stream& stream_;
  std::function<void()> work_;
  std::optional<backend::Recording> recording_;
};

/// One iteration for every turn of the benchmark: before(turn), then queueing(turn) between events.
template <class Before, class Queue>
void time_turns(benchmark::State& state,
                const Workload& workload,
                double batches_per_iteration,
                Before before,
                Queue queue) {
  Times times;
  backend::Event start(device(), true), stop(device(), true);
  std::size_t turn = 0;
  for (auto _ : state) {
    before(turn);
    const auto begin = std::chrono::steady_clock::now();
    start.record(workload.stream);
    queue(turn++);
    stop.record(workload.stream);
    const auto host = std::chrono::steady_clock::now() - begin;
    stop.wait_until_reached();
    times.add(state, backend::Event::milliseconds_between(start, stop) * 1e-3, host);
  }
  times.report(state, batches_per_iteration);
}

/// Times `work(batch)` of all batches of the workload back to back, after a turn that does not
/// count; beside it the time that the host takes to queue the work, which must be less.
template <class Work>
void time_batches(benchmark::State& state, Workload& workload, Work work) {
  const Queueing queueing(workload, [&] {
    for (auto& batch : workload.batches) work(*batch);
  });
  time_turns(
      state, workload, static_cast<double>(workload.batches.size()), [](std::size_t) {},
      [&](std::size_t) { queueing(); });
}

/// The same one by one, if `before(batch)` must precede each and is not to be counted. The device
/// is busy with that while the host queues the work.
template <class Before, class Work>
void time_batches(benchmark::State& state, Workload& workload, Before before, Work work) {
  std::vector<Queueing> queueing;
  for (auto& batch : workload.batches) {
    before(*batch);
    queueing.emplace_back(workload, [&work, &batch] { work(*batch); });
  }
  const std::size_t count = queueing.size();
  time_turns(
      state, workload, 1, [&](std::size_t turn) { before(*workload.batches[turn % count]); },
      [&](std::size_t turn) { queueing[turn % count](); });
}

/// Reports bytes per batch in the median time as GB/s and as a share of the copy. Compulsory: each
/// distinct row once; algorithmic: once per occurrence.
inline void report(benchmark::State& state, double compulsory_bytes, double algorithmic_bytes) {
  if (!times_are_of_a_gpu()) return;
  const double seconds = state.counters["median_us"].value * 1e-6;
  state.counters["compulsory_GBps"] = compulsory_bytes / seconds * 1e-9;
  state.counters["algorithmic_GBps"] = algorithmic_bytes / seconds * 1e-9;
  state.counters["compulsory_share"] = compulsory_bytes / seconds / copy_rate();
  state.counters["algorithmic_share"] = algorithmic_bytes / seconds / copy_rate();
  state.counters["copy_GBps"] = copy_rate() * 1e-9;
}

/// Runs kBody with a workload of the benchmark's arguments, which is set up once. Skips the
/// benchmark, with the reason, if the device is missing or cannot do it.
template <void (*kBody)(benchmark::State&, Workload&)>
void with_workload(benchmark::State& state) {
  const std::string reason = backend::why_no_cuda();
  if (!reason.empty()) return state.SkipWithError(("no GPU: " + reason).c_str());
  try {
    const auto begin = std::chrono::steady_clock::now();
    const Axes axes = axes_of(state);
    device();  // settings are of the current device
    std::unique_ptr<Setting> granularity;
    if (axes.fetch_bytes != 0) granularity = set_fetch_granularity(axes.fetch_bytes);
    Workload workload(axes);
    const std::chrono::duration<double> set_up = std::chrono::steady_clock::now() - begin;
    if (times_are_of_a_gpu()) state.counters["set_up_s"] = set_up.count();
    kBody(state, workload);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable) throw;
    state.SkipWithError(error.what());
  }
}

}  // namespace satrap::bench
