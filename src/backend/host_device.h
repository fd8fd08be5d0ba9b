#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "satrap/backend/device.h"
#include "satrap/core/error.h"
#include "satrap/core/thread_pool.h"
#include "satrap/kernels/pool.h"
#include "satrap/kernels/sort_unique.h"

namespace satrap::backend {

/// The host as a device: the calling thread does everything when it is queued. Rows have the layout
/// of a GPU's memory, with the header last.
class HostDevice final : public Device {
 public:
  /// `pool`, which outlives it, shares the work of pool_forward and backward_update; may be null.
  explicit HostDevice(ThreadPool* pool) : pool_(pool) {}

  DeviceInfo info() const override;
  bool is_host() const override { return true; }
  void use_on_this_thread() const override {}
  std::byte* allocate(Place place, std::int64_t bytes, const char* what) override;
  void free(Place place, std::byte* memory) noexcept override;
  std::string register_host(std::byte*, std::int64_t) override { return {}; }
  void unregister_host(std::byte*) noexcept override {}
  void copy(void* to, const void* from, std::int64_t bytes, StreamRef stream) override;
  void fill(void* memory, int byte, std::int64_t bytes, StreamRef stream) override;
  std::int64_t prims_scratch_bytes(std::int64_t) const override { return 0; }

  void* make_stream(bool) override { return nullptr; }
  void destroy_stream(void*) noexcept override {}
  void wait_until_idle(StreamRef) override {}
  void* make_event(bool with_time) override;
  void destroy_event(void* event) noexcept override;
  void record(void* event, StreamRef stream) override;
  void make_wait(StreamRef, void*) override {}
  bool is_reached(void*) override { return true; }
  void wait_until_reached(void*) override {}
  double milliseconds_between(void* start, void* stop) override;
  void begin_recording(StreamRef) override { SATRAP_CHECK(false, "the host queues nothing"); }
  void* end_recording(StreamRef) override { return nullptr; }
  void abandon_recording(StreamRef) noexcept override {}
  void queue_recording(void*, StreamRef) override {}
  void destroy_recording(void*) noexcept override {}
  int libtorch_gpu() const override { return -1; }
  void run_in_order(StreamRef, std::function<void()> compute) override { compute(); }

  void build_plan(const BuildPlan& operation, StreamRef stream) override;
  void touch(const Touch& operation, StreamRef stream) override;
  void resolve(const Resolve& operation, StreamRef stream) override;
  void gather_rows(const GatherRows& operation, StreamRef stream) override;
  void scatter_rows(const ScatterRows& operation, StreamRef stream) override;
  void load_rows(const LoadRows& operation, StreamRef stream) override;
  void pool_forward(const PoolForward& operation, StreamRef stream) override;
  void backward_update(const BackwardUpdate& operation, StreamRef stream) override;
  void cancel_update(const CancelUpdate& operation, StreamRef stream) override;
  void backward_gradients(const BackwardGradients& operation, StreamRef stream) override;
  void list_slots(const ListSlots& operation, StreamRef stream) override;
  void mark_clean(const MarkClean& operation, StreamRef stream) override;
  void dropout_factors(const DropoutFactors& operation, StreamRef stream) override;
  void add_in_order(const AddInOrder& operation, StreamRef stream) override;

 private:
  void sort_ids(const PlanView& plan);
  void for_each(std::int64_t count, const std::function<void(std::int64_t)>& body) const;

  void pool_present(const CacheView& cache, const Bags& bags, const PlanView& plan, float* out);
  Occurrences occurrences_of(const PlanView& plan,
                             FloatType grad_type,
                             const void* grad,
                             std::int64_t padded_dim);
  template <class Visit>
  void for_each_gradient(const PlanView& plan,
                         const Occurrences& occurrences,
                         const RowLayout& layout,
                         Visit&& visit);

  ThreadPool* const pool_;
  std::vector<KeyOccurrence> items_, other_items_;  // of build_plan, which runs on one thread

  // Scratch of pool_forward and backward, kept from batch to batch.
  std::vector<float> vector_, sum_, scratch_, decoded_;
  std::vector<std::uint32_t> offsets_;
  std::vector<const std::byte*> rows_;
};

}  // namespace satrap::backend
