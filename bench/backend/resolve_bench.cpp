#include "bench/backend/timing.h"

namespace satrap::bench {
namespace {

/// Saves the state of a cache that resolve changes, so that every turn has the same hits and
/// misses.
class Bookkeeping {
 public:
  explicit Bookkeeping(const Workload& workload) : workload_(workload) {
    const backend::CacheView& v = workload.cache->view();
    const std::int64_t slots = v.size.num_slots();
    parts_ = {
        {v.tags, slots * 8}, {v.digests, slots}, {v.last_needed, slots * 4}, {v.dirty, slots}};
    for (const Part& part : parts_) {
      saved_.emplace_back(device(), backend::Place::kDevice, part.bytes, "a saved cache");
      device().copy(saved_.back().data(), part.data, part.bytes, workload.stream);
    }
  }
  void restore() const {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      device().copy(parts_[i].data, saved_[i].data(), parts_[i].bytes, workload_.stream);
    }
  }

 private:
  struct Part {
    void* data;
    std::int64_t bytes;
  };
  const Workload& workload_;
  std::vector<Part> parts_;
  std::vector<Memory> saved_;
};

/// Probe, admit, evict; with misses also the copies of whole rows: victims out, new rows in.
void resolve(benchmark::State& state, Workload& workload) {
  const backend::CacheView& cache = workload.cache->view();
  device().fill(cache.dirty, backend::kChanged, cache.size.num_slots(), workload.stream);
  const Bookkeeping bookkeeping(workload);
  for (auto& batch : workload.batches) workload.build(*batch);
  const std::int64_t max_rows = load().ids();
  const Memory staging(device(), backend::Place::kDevice, max_rows * workload.layout.row_bytes,
                       "staging");
  const std::uint32_t number = workload.next + 1;
  time_batches(
      state, workload, [&](Batch&) { bookkeeping.restore(); },
      [&](Batch& batch) {
        workload.resolve(batch, number);
        const backend::MissView& m = batch.misses();
        device().gather_rows(
            {cache, {m.writeback_slots, &m.counts->writebacks, 0, max_rows}, staging.data()},
            workload.stream);
        device().scatter_rows(
            {cache, {m.miss_slots, &m.counts->misses, 0, max_rows}, staging.data()},
            workload.stream);
      });
  const Batch& batch = *workload.batches[0];
  const auto counts = download_one(batch.misses().counts);
  state.counters["unique"] = static_cast<double>(workload.num_unique(batch));
  state.counters["misses"] = counts.misses;
  state.counters["writebacks"] = counts.writebacks;
  state.counters["overflows"] = counts.overflows;
  // Per set that is touched, its digests and last_needed (read, written); per key its tag, slot,
  // and the sector of its tag in the set; per copied row a read and a write.
  const double unique = static_cast<double>(workload.num_unique(batch));
  const double sets = download_one(batch.view().counts).set_runs;
  const double bytes =
      sets * (32 + 2 * 128 + 4) + unique * (8 + 4 + 4 + 32) +
      (counts.misses + counts.writebacks) * 2.0 * static_cast<double>(workload.layout.row_bytes);
  report(state, bytes, bytes);
}
BENCHMARK(with_workload<resolve>)->Name("resolve")->Apply([](auto* b) {
  apply_axes(b, {.lookups = true});
});

}  // namespace
}  // namespace satrap::bench
