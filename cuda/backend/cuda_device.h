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
  const int number_;
  const Grids grids_;
};

}  // namespace satrap::backend
