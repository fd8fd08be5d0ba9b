// Stands in for cuda/backend/ where the build has no CUDA: says so, and refuses.
#include "satrap/backend/device.h"
#include "satrap/backend/memory.h"
#include "satrap/backend/operations.h"
#include "satrap/core/error.h"
#include "src/backend/prims.h"

namespace satrap::backend {

namespace {
constexpr const char* kReason = "this build has no CUDA (cmake -DSATRAP_CUDA=ON)";
[[noreturn]] void refuse() { throw Error(ErrorCode::kUnavailable, kReason); }
}  // namespace

std::string why_unavailable() { return kReason; }
DeviceInfo device_info() { refuse(); }

Stream::Stream(Priority) { refuse(); }
Stream::~Stream() {}
void Stream::wait_until_idle() const { refuse(); }
Event::Event(bool) { refuse(); }
Event::~Event() {}
void Event::record(StreamRef) { refuse(); }
void Event::hold_back(StreamRef) const { refuse(); }
bool Event::is_reached() const { refuse(); }
void Event::wait_until_reached() const { refuse(); }
double Event::milliseconds_between(const Event&, const Event&) { refuse(); }

Memory::Memory(Place, std::int64_t, const char*) { refuse(); }
Memory::~Memory() {}
Memory::Memory(Memory&&) noexcept {}
Memory& Memory::operator=(Memory&&) noexcept { return *this; }
void copy(void*, const void*, std::int64_t, StreamRef) { refuse(); }
void fill(void*, int, std::int64_t, StreamRef) { refuse(); }

std::int64_t prims_scratch_bytes(std::int64_t) { refuse(); }

void build_plan(const Bags&, std::int64_t, std::int64_t, const PlanView&, StreamRef) { refuse(); }
void resolve(const CacheView&,
             const PlanView&,
             const ResolveArguments&,
             const MissView&,
             StreamRef) {
  refuse();
}
void gather_rows(const CacheView&,
                 const std::int32_t*,
                 const std::uint32_t*,
                 std::int64_t,
                 std::int64_t,
                 std::byte*,
                 StreamRef) {
  refuse();
}
void commit_rows(const CacheView&,
                 const std::int32_t*,
                 const std::uint32_t*,
                 std::int64_t,
                 std::int64_t,
                 const std::byte*,
                 StreamRef) {
  refuse();
}
void pool_forward(const CacheView&, const Bags&, const PlanView&, FloatType, void*, StreamRef) {
  refuse();
}
void backward_update(const CacheView&,
                     const PlanView&,
                     FloatType,
                     const void*,
                     RowOptimizerType,
                     const TableStep*,
                     StreamRef) {
  refuse();
}
void backward_gradients(const RowLayout&,
                        const PlanView&,
                        FloatType,
                        const void*,
                        float*,
                        StreamRef) {
  refuse();
}
void list_slots(const CacheView&,
                ListMode,
                std::int64_t,
                std::int64_t,
                const SlotList&,
                StreamRef) {
  refuse();
}
void mark_clean(const CacheView&, const SlotList&, StreamRef) { refuse(); }

}  // namespace satrap::backend
