#pragma once

#include "cuda/backend/launch.h"
#include "satrap/backend/device.h"

namespace satrap::backend {

/// A GPU. Each operation is in the file of its kernels: build_plan in plan.cu, resolve in
/// resolve.cu, and so on.
class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int number);

  DeviceInfo info() const override;
  bool is_host() const override { return false; }
  void use_on_this_thread() const override;
  std::byte* allocate(Place place, std::int64_t bytes, const char* what) override;
  void free(Place place, std::byte* memory) noexcept override;
  std::string register_host(std::byte* memory, std::int64_t bytes) override;
  void unregister_host(std::byte* memory) noexcept override;
  void copy(void* to, const void* from, std::int64_t bytes, StreamRef stream) override;
  void fill(void* memory, int byte, std::int64_t bytes, StreamRef stream) override;
  std::int64_t prims_scratch_bytes(std::int64_t max_items) const override;

  void* make_stream(bool high_priority) override;
  void destroy_stream(void* stream) noexcept override;
  void wait_until_idle(StreamRef stream) override;
  void* make_event(bool with_time) override;
  void destroy_event(void* event) noexcept override;
  void record(void* event, StreamRef stream) override;
  void make_wait(StreamRef stream, void* event) override;
  bool is_reached(void* event) override;
  void wait_until_reached(void* event) override;
  double milliseconds_between(void* start, void* stop) override;
  void begin_recording(StreamRef stream) override;
  void* end_recording(StreamRef stream) override;
  void abandon_recording(StreamRef stream) noexcept override;
  void queue_recording(void* recording, StreamRef stream) override;
  void destroy_recording(void* recording) noexcept override;
  int libtorch_gpu() const override;
  void run_in_order(StreamRef stream, std::function<void()> compute) override;

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
  void load_rows(const CacheView& cache,
                 const std::int32_t* slots,
                 const std::uint32_t* count,
                 std::int64_t max_rows,
                 const std::byte* const* rows,
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
                          const std::int32_t* places,
                          float* out,
                          StreamRef stream) override;
  void list_slots(const CacheView& cache,
                  ListMode mode,
                  std::int64_t first_set,
                  std::int64_t num_sets,
                  const SlotList& list,
                  StreamRef stream) override;
  void mark_clean(const CacheView& cache, const SlotList& list, StreamRef stream) override;
  void cancel_update(const float* flag, const PlanView& plan, StreamRef stream) override;
  void dropout_factors(const Dropout& dropout,
                       std::int64_t first_example,
                       std::int64_t rows,
                       std::int64_t columns,
                       float* out,
                       std::int64_t stride,
                       StreamRef stream) override;
  void add_in_order(std::span<const float* const> vectors,
                    std::int64_t count,
                    float* sum,
                    StreamRef stream) override;

 private:
  const int number_;
  const Grids grids_;
};

}  // namespace satrap::backend
