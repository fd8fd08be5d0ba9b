#include "tests/support/simt/device.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <string_view>
#include <utility>

#include "tests/support/simt/turns.h"

namespace simt {
namespace {

std::uintptr_t address_of(Bytes bytes) { return std::bit_cast<std::uintptr_t>(bytes.data()); }

}  // namespace

Turns& turns() {
  static Turns& instance = *new Turns;  // threads may outlive main()
  return instance;
}

Devices& devices() {
  static Devices& instance = *new Devices;  // threads may outlive main()
  return instance;
}

Devices::Devices() {
  const char* const count = std::getenv("SIMT_DEVICES");
  count_ = count == nullptr ? 8 : std::atoi(count);
}

cudaStream_t Devices::make_stream(int device) {
  streams_.push_back(new CUstream_st{.device = device, .order = order_.make_stream()});
  return streams_.back();
}

void Devices::destroy_stream(cudaStream_t stream) {
  try {
    while (!stream->queue.empty()) {
      if (run_one()) continue;
      stream->is_destroyed = true;  // it ends when its work has
      return;
    }
  } catch (...) {
    end(stream);
    throw;
  }
  end(stream);
}

void Devices::end(CUstream_st* stream) {
  order_.end_stream(stream->order);
  std::erase(streams_, stream);
  delete stream;
  if (!has_streams()) lost_.clear();
}

CUstream_st& Devices::stream(cudaStream_t handle, int device) {
  if (handle != nullptr) return *handle;
  CUstream_st*& found = default_streams_[device];
  if (found == nullptr) found = make_stream(device);
  return *found;
}

// --------------------------------------------------------------------------------------- queues

void Devices::queue_made(CUstream_st& stream, const std::function<Work()>& make) {
  if (!stream.captured) return queue(stream, make());
  stream.captured.add(make);
}

void Devices::queue(CUstream_st& stream, Work work) {
  if (stream.captured) {
    return stream.captured.add([work = std::move(work)] { return work; });
  }
  if (!lost_.empty()) return;
  stream.queue.push_back(
      {.work = std::move(work), .before = order_.queue(stream.order, stream.device)});
  // A device works while nobody waits for it.
  if (draw_stream(4) == 1) run_one();
}

void Devices::queue_copy(CUstream_st& stream, void* to, Bytes from) {
  const std::string name = "a copy of " + std::to_string(from.size()) + " bytes";
  queue_made(stream, [=, this] {
    const auto copy = [this, to, from, name, hash = hash_if_pinned(from), next = races_.next()] {
      if (hash_if_pinned(from) != hash && !races_.has_written_since(next, from)) {
        throw Fault("race: the host writes what " + name + " reads, before it has run");
      }
      std::memcpy(to, from.data(), from.size());
    };
    return Work{.run = copy,
                .name = name,
                .reads = {from},
                .writes = {{static_cast<const std::byte*>(to), from.size()}},
                .is_copy = true};
  });
}

std::size_t Devices::hash_if_pinned(Bytes bytes) const {
  const Allocation* const found = memory_.find(address_of(bytes));
  if (found == nullptr || found->kind != Allocation::Kind::kPinned) return 0;
  return std::hash<std::string_view>{}({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void Devices::queue_record(CUstream_st& stream, CUevent_st& event) {
  event.captured = stream.captured;
  if (stream.captured) return;
  event.clock = stream.order.clock;
  const auto reach = [event = event.self, generation = ++event.recorded] {
    event->completed = generation;
    event->time = std::chrono::steady_clock::now();
  };
  queue(stream, {.run = reach, .name = ""});
}

bool Devices::queue_wait(CUstream_st& stream, CUevent_st& event) {
  if (stream.captured || event.captured) return wait_in_capture(stream.captured, stream, event);
  if (!lost_.empty()) return true;
  stream.queue.push_back(
      {.work = {.run = [] {}, .name = ""}, .awaits = event.self, .generation = event.recorded});
  stream.order.clock.join(event.clock);
  return true;
}

/// A stream that waits for an event of a capture takes part in it.
bool Devices::wait_in_capture(Captured& captured, CUstream_st& stream, CUevent_st& event) {
  if (!captured && !event.captured.capture->has_ended) {
    Capture& capture = *event.captured.capture;
    captured = {event.captured.capture, capture.lanes.size(), event.captured.last};
    capture.lanes.push_back(&stream);
    capture.devices.push_back(stream.device);
    return true;
  }
  if (captured && captured.capture == event.captured.capture) {
    captured.last.insert(captured.last.end(), event.captured.last.begin(),
                         event.captured.last.end());
    return true;
  }
  if (captured) captured.capture->is_valid = false;
  return false;
}

// ---------------------------------------------------------------------------------------- waits

void Devices::wait_until_idle(int device) {
  run_all(device);
  throw_if_lost();
}

void Devices::run_all(int device) {
  const auto is_idle = [&](const CUstream_st* stream) {
    return stream->device != device || stream->is_reached();
  };
  while (!std::ranges::all_of(streams_, is_idle)) run_some();
  order_.host_waits_for_all(device);
}

void Devices::note_wait(const Clock& clock) {
  throw_if_lost();
  order_.host_waits_for(clock);
}

void Devices::throw_if_lost() {
  if (lost_.empty()) return;
  const Fault fault(lost_);
  if (!has_streams()) lost_.clear();
  throw fault;
}

void Devices::run_some() {
  const std::uint64_t heard = turns().rings();
  if (run_one()) return;
  throw_if_lost();
  const auto waits_for_others = [](const CUstream_st* stream) {
    return !stream->queue.empty() && stream->queue.front().work.poll;
  };
  if (std::ranges::none_of(streams_, waits_for_others)) {
    throw Fault("streams wait for each other for ever");
  }
  turns().rest(heard);
}

// ----------------------------------------------------------------------------------------- work

bool Devices::run_one() {
  std::vector<CUstream_st*> ready;
  std::ranges::copy_if(streams_, std::back_inserter(ready), [](const CUstream_st* stream) {
    return !stream->queue.empty() && stream->queue.front().ready();
  });
  while (!ready.empty()) {
    const auto chosen = ready.begin() + static_cast<std::ptrdiff_t>(draw_stream(ready.size()));
    CUstream_st* const stream = *chosen;
    Progress progress = Progress::kWaits;
    try {
      progress = proceed(*stream);
    } catch (const std::exception& error) {
      if (has_streams()) lost_ = error.what();
      drop_all();
      turns().ring();
      throw;
    }
    if (progress != Progress::kWaits) {
      if (stream->is_destroyed && stream->queue.empty()) end(stream);
      return true;
    }
    ready.erase(chosen);
  }
  return false;
}

void Devices::drop_all() {
  for (CUstream_st* stream : std::vector(streams_)) {
    stream->queue.clear();
    if (stream->is_destroyed) end(stream);
  }
}

/// Runs the first work of a stream, or asks one that waits for others how it is.
Progress Devices::proceed(CUstream_st& stream) {
  if (!stream.queue.front().work.poll) {
    const CUstream_st::Item item = std::move(stream.queue.front());
    stream.queue.pop_front();
    run(stream, item);
    return Progress::kDone;
  }
  CUstream_st::Item& item = stream.queue.front();
  if (!item.has_begun) {
    begin(stream, item);
    races_.end();
    item.has_begun = true;
  }
  const Progress progress = item.work.poll();
  if (progress == Progress::kDone) {
    stream.queue.pop_front();
    turns().ring();
  }
  return progress;
}

/// Looks at what work touches, except for what it tells while it runs.
void Devices::begin(const CUstream_st& stream, const CUstream_st::Item& item) {
  races_.begin(item.work.name + " on stream " + std::to_string(stream.order.number),
               stream.order.index, item.before, touched_by(stream, item.work));
  for (const Bytes bytes : item.work.reads) {
    races_.touch_range<false>(address_of(bytes), bytes.size());
  }
  for (const Bytes bytes : item.work.writes) {
    races_.touch_range<true>(address_of(bytes), bytes.size());
  }
}

DeviceSet Devices::touched_by(const CUstream_st& stream, const Work& work) const {
  if (work.is_copy) return DeviceSet().set();
  const auto peers = peers_.find(stream.device);
  DeviceSet devices = peers == peers_.end() ? DeviceSet() : peers->second;
  return devices.set(static_cast<std::size_t>(stream.device));
}

/// A record of an event has no name, and touches nothing.
void Devices::run(const CUstream_st& stream, const CUstream_st::Item& item) {
  if (item.work.name.empty()) return item.work.run();
  begin(stream, item);
  {
    const Races::Watch watch(races_);
    item.work.run();
  }
  races_.end();
  if (item.work.tells_host) order_.host_waits_for(item.before);
}

}  // namespace simt
