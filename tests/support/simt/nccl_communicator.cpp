#include "tests/support/simt/nccl_communicator.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <utility>

#include <pthread.h>

#include "tests/support/simt/counts.h"
#include "tests/support/simt/device.h"
#include "tests/support/simt/nccl_operation.h"
#include "tests/support/simt/nccl_sum.h"
#include "tests/support/simt/turns.h"

namespace simt {

std::size_t Call::bytes() const { return count * size_of(type); }

Communicator::Communicator(const std::string& name,
                           std::uint64_t seed,
                           Mesh::Hello self,
                           int device)
    : seed_(seed), self_(self), device_(device), mesh_(name, self), inboxes_(self.num_ranks) {
  thread_ = std::thread([this] { serve(); });
}

Communicator::~Communicator() {
  if (thread_.joinable()) abort();
}

// ------------------------------------------------------------------------- of the thread that
// serves

void Communicator::serve() {
  pthread_setname_np(pthread_self(), "simt-nccl");
  try {
    if (!mesh_.connect()) return;
    check_devices();
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    last_error_ = error.what();
    joined_ = ncclRemoteError;
    turns().ring();
    return;
  }
  turns().ring();
  mesh_.serve([this](int rank, Message message) { receive(rank, std::move(message)); },
              [this](int rank) { lose(rank); }, [this] { return help(); });
}

/// As NCCL, which takes no two ranks on a device.
void Communicator::check_devices() {
  std::string duplicate;
  for (const Mesh::Hello& one : mesh_.hellos()) {
    for (const Mesh::Hello& other : mesh_.hellos()) {
      if (one.rank >= other.rank || one.device != other.device || !duplicate.empty()) continue;
      duplicate = "Duplicate GPU detected : rank " + std::to_string(one.rank) + " and rank " +
                  std::to_string(other.rank) + " both on CUDA device " + std::to_string(one.device);
    }
  }
  const std::lock_guard lock(mutex_);
  last_error_ = duplicate;
  joined_ = duplicate.empty() ? ncclSuccess : ncclInvalidUsage;
}

void Communicator::receive(int rank, Message message) {
  {
    const std::lock_guard lock(mutex_);
    Inbox& inbox = inboxes_[static_cast<std::size_t>(rank)];
    switch (message.kind) {
      case Message::Kind::kCollective:
        inbox.collectives.push_back(std::move(message));
        break;
      case Message::Kind::kSend:
        inbox.sends.push_back(std::move(message));
        break;
      case Message::Kind::kTaken:
        inbox.taken.push_back(std::move(message));
        break;
      case Message::Kind::kFinalize:
      case Message::Kind::kBye:
        inbox.has_finalized = true;
        break;
    }
  }
  turns().ring();
}

void Communicator::lose(int rank) {
  {
    const std::lock_guard lock(mutex_);
    inboxes_[static_cast<std::size_t>(rank)].has_finalized = true;
    const char* const death = std::getenv("SIMT_NCCL_DEATH");
    if (death != nullptr && std::string_view(death) == "error") {
      error_ = ncclRemoteError;
      last_error_ = "rank " + std::to_string(rank) + " is gone";
    }
  }
  turns().ring();
}

/// Whether another rank waits for work that is queued here.
bool Communicator::is_asked() {
  const std::lock_guard lock(mutex_);
  return !is_aborted_ && num_finished_ < num_queued_ &&
         std::ranges::any_of(
             inboxes_,
             [](const Inbox& inbox) { return !inbox.collectives.empty() || !inbox.sends.empty(); });
}

/// Runs what is to be run until nobody asks, or nothing can. Returns whether somebody asks.
bool Communicator::help() {
  if (!is_asked()) return false;
  const Turn turn(turns());
  try {
    while (is_asked()) {
      if (!devices().run_one()) return true;
    }
  } catch (const std::exception& fault) {
    devices().lose(fault.what());
  }
  return false;
}

// ---------------------------------------------------------------------------------------- of
// callers

ncclResult_t Communicator::issue(std::vector<Call> calls, cudaStream_t stream) {
  if (blocking) {
    queue(std::move(calls), stream);
    return ncclSuccess;
  }
  const Turn turn(turns());
  const std::uint64_t num_questions = draw_stream(3);
  const std::lock_guard lock(mutex_);
  later_ = {std::move(calls), stream, num_questions};
  return ncclInProgress;
}

void Communicator::queue(std::vector<Call> calls, cudaStream_t stream) {
  const Turn turn(turns());
  const auto make = [self = shared_from_this(), calls = std::move(calls)] {
    return self->make_work(calls);
  };
  devices().queue_made(devices().stream(stream, device_), make);
}

/// The next of the communicator.
Work Communicator::make_work(const std::vector<Call>& calls) {
  ++counts().collectives;
  for (const Call& call : calls) {
    if (call.from != nullptr) counts().collective_bytes += static_cast<std::int64_t>(call.bytes());
  }
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = num_queued_++;
  }
  mesh_.wake();
  const auto operation = std::make_shared<Operation>(shared_from_this(), number, calls);
  return {.run = {},
          .name = operation->name(),
          .reads = operation->reads(),
          .writes = operation->writes(),
          .poll = [operation] { return operation->poll(); }};
}

ncclResult_t Communicator::status() {
  std::optional<Later> now;
  {
    const std::lock_guard lock(mutex_);
    if (joined_ != ncclSuccess) return joined_;
    if (error_ != ncclSuccess) return error_;
    if (later_) {
      if (later_->num_questions-- > 0) return ncclInProgress;
      now = std::exchange(later_, std::nullopt);
    }
  }
  if (now) {
    queue(std::move(now->calls), now->stream);
    return ncclInProgress;
  }
  return proceed_to_finalize() ? ncclSuccess : ncclInProgress;
}

std::string Communicator::last_error() {
  const std::lock_guard lock(mutex_);
  return last_error_;
}

void Communicator::finish(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  num_finished_ = std::max(num_finished_, number + 1);
}

bool Communicator::has_finished() {
  const std::lock_guard lock(mutex_);
  return num_finished_ == num_queued_;
}

void Communicator::send(int rank, Message message) {
  if (rank == this->rank()) {
    receive(rank, std::move(message));
  } else {
    mesh_.send(rank, std::move(message));
  }
}

ncclResult_t Communicator::wait() {
  for (;;) {
    const std::uint64_t heard = turns().rings();
    if (const ncclResult_t result = status(); result != ncclInProgress) return result;
    const Turn turn(turns());
    turns().rest(heard);
  }
}

ncclResult_t Communicator::finalize() {
  {
    const std::lock_guard lock(mutex_);
    is_finalizing_ = true;
  }
  return blocking ? wait() : ncclInProgress;
}

/// Whether all ranks have done their work, if this one finalizes.
bool Communicator::proceed_to_finalize() {
  {
    const std::lock_guard lock(mutex_);
    if (!is_finalizing_) return true;
  }
  if (!has_finished()) {
    const Turn turn(turns());
    devices().run_one();
    if (!has_finished()) return false;
  }
  const std::lock_guard lock(mutex_);
  if (!std::exchange(has_told_, true)) {
    inboxes_[self_.rank].has_finalized = true;
    for (int rank = 0; rank < num_ranks(); ++rank) {
      if (rank != this->rank()) mesh_.send(rank, {.kind = Message::Kind::kFinalize});
    }
  }
  return std::ranges::all_of(inboxes_, &Inbox::has_finalized);
}

void Communicator::leave() {
  while (!has_finished()) {
    const Turn turn(turns());
    const std::uint64_t heard = turns().rings();
    if (!devices().run_one() && !has_finished()) turns().rest(heard);
  }
  for (int rank = 0; rank < num_ranks(); ++rank) {
    if (rank != this->rank()) mesh_.send(rank, {.kind = Message::Kind::kBye});
  }
  mesh_.stop(true);
  if (thread_.joinable()) thread_.join();
  mesh_.close();
}

void Communicator::abort() {
  {
    const std::lock_guard lock(mutex_);
    is_aborted_ = true;
    later_.reset();
  }
  turns().ring();
  mesh_.stop(false);
  if (thread_.joinable()) thread_.join();
  mesh_.close();
}

}  // namespace simt
