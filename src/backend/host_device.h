#pragma once

#include <cstdint>
#include <vector>

#include "satrap/backend/device.h"

namespace satrap::backend {

/// The host as a device: the calling thread does everything when it is queued. Rows have the layout
/// of a GPU's memory, with the header last.
class HostDevice final : public Device {
 public:
  DeviceInfo info() const override;
  void use_on_this_thread() const override {}
  std::byte* allocate(Place place, std::int64_t bytes, const char* what) override;
  void free(Place place, std::byte* memory) noexcept override;
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

  void build_plan(const Bags& bags,
                  std::int64_t num_sets,
                  std::int64_t padded_dim,
                  const PlanView& plan,
                  StreamRef stream) override;
  void touch(const CacheView& cache,
             const WindowView& window,
             const PlanView& plan,
             const TouchArguments& arguments,
             StreamRef stream) override;
  void resolve(const CacheView& cache,
               const PlanView& plan,
               const ResolveArguments& arguments,
               const MissView& misses,
               StreamRef stream) override;
  void gather_rows(const CacheView& cache,
                   const std::int32_t* slots,
                   const std::uint32_t* count,
                   std::int64_t begin,
                   std::int64_t max_rows,
                   std::byte* staging,
                   StreamRef stream) override;
  void scatter_rows(const CacheView& cache,
                    const std::int32_t* slots,
                    const std::uint32_t* count,
                    std::int64_t begin,
                    std::int64_t max_rows,
                    const std::byte* staging,
                    StreamRef stream) override;
  void pool_forward(const CacheView& cache,
                    const Bags& bags,
                    const PlanView& plan,
                    FloatType out_type,
                    void* out,
                    StreamRef stream) override;
  void backward_update(const CacheView& cache,
                       const PlanView& plan,
                       FloatType grad_type,
                       const void* grad,
                       RowOptimizerType optimizer,
                       const TableStep* steps,
                       StreamRef stream) override;
  void backward_gradients(const RowLayout& layout,
                          const PlanView& plan,
                          FloatType grad_type,
                          const void* grad,
                          float* out,
                          StreamRef stream) override;
  void list_slots(const CacheView& cache,
                  ListMode mode,
                  std::int64_t first_set,
                  std::int64_t num_sets,
                  const SlotList& list,
                  StreamRef stream) override;
  void mark_clean(const CacheView& cache, const SlotList& list, StreamRef stream) override;

 private:
  /// Sums the gradient of key `unique` over its occurrences, as floats: [padded_dim].
  const float* sum_gradient(const PlanView& plan,
                            std::int64_t unique,
                            FloatType grad_type,
                            const void* grad,
                            std::int64_t padded_dim);

  // Scratch of pool_forward and backward, kept from batch to batch.
  std::vector<float> vector_, sum_, scratch_, decoded_;
  std::vector<std::uint32_t> offsets_;
  std::vector<std::byte> row_;
};

}  // namespace satrap::backend
