#include "tests/support/simt/device.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <iterator>
#include <string_view>
#include <utility>

namespace simt {
namespace {

std::uintptr_t address_of(Bytes bytes) { return std::bit_cast<std::uintptr_t>(bytes.data()); }

}  // namespace

cudaStream_t Device::make_stream() {
  streams_.push_back(new CUstream_st{.order = order_.make_stream()});
  return streams_.back();
}

void Device::destroy_stream(cudaStream_t stream) {
  while (!stream->is_reached()) run_some();
  order_.end_stream(stream->order);
  std::erase(streams_, stream);
  delete stream;
  if (streams_.size() == 1) lost_.clear();
}

// --------------------------------------------------------------------------------------- queues

void Device::queue(CUstream_st& stream, Work work) {
  if (!lost_.empty()) return;
  stream.queue.push_back({.work = std::move(work), .before = order_.queue(stream.order)});
  // A device works while nobody waits for it.
  if (draw_stream(4) == 1) run_one();
}

void Device::queue_copy(CUstream_st& stream, void* to, Bytes from) {
  const std::string name = "a copy of " + std::to_string(from.size()) + " bytes";
  const auto copy = [this, to, from, name, hash = hash_if_pinned(from), next = races_.next()] {
    if (hash_if_pinned(from) != hash && !races_.has_written_since(next, from)) {
      throw Fault("race: the host writes what " + name + " reads, before it has run");
    }
    std::memcpy(to, from.data(), from.size());
  };
  queue(stream, {.run = copy,
                 .name = name,
                 .reads = {from},
                 .writes = {{static_cast<const std::byte*>(to), from.size()}}});
}

std::size_t Device::hash_if_pinned(Bytes bytes) const {
  const Allocation* const found = memory_.find(address_of(bytes));
  if (found == nullptr || found->kind != Allocation::Kind::kPinned) return 0;
  return std::hash<std::string_view>{}({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void Device::queue_record(CUstream_st& stream, CUevent_st& event) {
  event.clock = stream.order.clock;
  const auto reach = [&event, generation = ++event.recorded] {
    event.completed = generation;
    event.time = std::chrono::steady_clock::now();
  };
  queue(stream, {.run = reach, .name = ""});
}

void Device::queue_wait(CUstream_st& stream, CUevent_st& event) {
  if (!lost_.empty()) return;
  stream.queue.push_back(
      {.work = {.run = [] {}, .name = ""}, .awaits = &event, .generation = event.recorded});
  stream.order.clock.join(event.clock);
}

// ---------------------------------------------------------------------------------------- waits

void Device::wait_until_idle() {
  run_all();
  throw_if_lost();
}

void Device::run_all() {
  while (!std::ranges::all_of(streams_, &CUstream_st::is_reached)) run_some();
  order_.host_waits_for_all();
}

void Device::note_wait(const Clock& clock) {
  throw_if_lost();
  order_.host_waits_for(clock);
}

void Device::throw_if_lost() const {
  if (!lost_.empty()) throw Fault(lost_);
}

void Device::run_some() {
  if (run_one()) return;
  throw_if_lost();
  throw Fault("streams wait for each other for ever");
}

// ----------------------------------------------------------------------------------------- work

/// Runs one piece of work of any stream that can continue; false if there is none.
bool Device::run_one() {
  std::vector<CUstream_st*> ready;
  std::ranges::copy_if(streams_, std::back_inserter(ready), [](const CUstream_st* stream) {
    return !stream->queue.empty() && stream->queue.front().ready();
  });
  if (ready.empty()) return false;
  CUstream_st* const stream = ready[draw_stream(ready.size())];
  const CUstream_st::Item item = std::move(stream->queue.front());
  stream->queue.pop_front();
  try {
    run(*stream, item);
  } catch (const std::exception& error) {
    for (CUstream_st* other : streams_) other->queue.clear();
    if (streams_.size() > 1) lost_ = error.what();
    throw;
  }
  return true;
}

/// Looks at what work touches. A record of an event has no name, and touches nothing.
void Device::run(const CUstream_st& stream, const CUstream_st::Item& item) {
  if (item.work.name.empty()) return item.work.run();
  races_.begin(item.work.name + " on stream " + std::to_string(stream.order.number),
               stream.order.index, item.before);
  for (const Bytes bytes : item.work.reads) {
    races_.touch_range<false>(address_of(bytes), bytes.size());
  }
  for (const Bytes bytes : item.work.writes) {
    races_.touch_range<true>(address_of(bytes), bytes.size());
  }
  {
    const Races::Watch watch(races_);
    item.work.run();
  }
  races_.end();
  if (item.work.tells_host) order_.host_waits_for(item.before);
}

}  // namespace simt
