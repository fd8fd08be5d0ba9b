#include "tests/support/simt/nccl_operation.h"

#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "tests/support/simt/nccl_sum.h"

namespace simt {
namespace {

const char* name_of_call(Call::What what) {
  switch (what) {
    case Call::What::kAllReduce:
      return "ncclAllReduce";
    case Call::What::kAllGather:
      return "ncclAllGather";
    case Call::What::kSend:
      return "ncclSend";
    case Call::What::kReceive:
      return "ncclRecv";
  }
  return "";
}

std::string describe(Call::What what, std::size_t count, ncclDataType_t type, int rank) {
  return std::string(name_of_call(what)) + " of " + std::to_string(count) + " " + name_of(type) +
         " by rank " + std::to_string(rank);
}

Bytes bytes_of(const Message& message) { return message.bytes; }

}  // namespace

Communicator::Operation::Operation(std::shared_ptr<Communicator> communicator,
                                   std::uint64_t number,
                                   std::vector<Call> calls)
    : communicator_(std::move(communicator)),
      number_(number),
      delay_before_(draw_stream(4)),
      delay_after_(draw_stream(4)) {
  for (Call& call : calls) parts_.push_back({.call = call});
}

Communicator::Operation::~Operation() {
  if (!has_ended_) communicator_->finish(number_);
}

std::string Communicator::Operation::name() const {
  const Call& first = parts_.front().call;
  std::string text = describe(first.what, first.count, first.type, communicator_->rank());
  if (parts_.size() > 1) text += " and " + std::to_string(parts_.size() - 1) + " more of its group";
  return text;
}

std::vector<Bytes> Communicator::Operation::reads() const {
  std::vector<Bytes> ranges;
  for (const auto& [call, number, own, others, is_done] : parts_) {
    if (call.from != nullptr) ranges.emplace_back(call.from, call.bytes());
  }
  return ranges;
}

std::vector<Bytes> Communicator::Operation::writes() const {
  std::vector<Bytes> ranges;
  for (const auto& [call, number, own, others, is_done] : parts_) {
    const auto parts = static_cast<std::size_t>(
        call.what == Call::What::kAllGather ? communicator_->num_ranks() : 1);
    if (call.to != nullptr) ranges.emplace_back(call.to, parts * call.bytes());
  }
  return ranges;
}

Progress Communicator::Operation::poll() {
  {
    const std::lock_guard lock(communicator_->mutex_);
    if (communicator_->is_aborted_)
      has_ended_ = true;
    else if (communicator_->num_finished_ < number_)
      return Progress::kWaits;
  }
  if (has_ended_) {
    poison();
    communicator_->finish(number_);
    return Progress::kDone;
  }
  if (!has_begun_) {
    if (delay_before_ > 0)
      --delay_before_;
    else
      begin();
    return Progress::kMoved;
  }
  if (!collect()) return Progress::kWaits;
  if (delay_after_ > 0) {
    --delay_after_;
    return Progress::kMoved;
  }
  for (const Part& part : parts_) write(part);
  has_ended_ = true;
  communicator_->finish(number_);
  return Progress::kDone;
}

/// Tells the other ranks this one's part.
void Communicator::Operation::begin() {
  has_begun_ = true;
  for (Part& part : parts_) {
    const Call& call = part.call;
    if (call.from == nullptr) continue;
    part.own.assign(call.from, call.from + call.bytes());
    Message message{.kind = Message::Kind::kSend,
                    .what = static_cast<std::uint32_t>(call.what),
                    .type = static_cast<std::uint32_t>(call.type),
                    .reduction = static_cast<std::uint32_t>(call.reduction),
                    .count = call.count,
                    .bytes = part.own};
    if (!call.is_collective()) {
      communicator_->send(call.peer, std::move(message));
      continue;
    }
    message.kind = Message::Kind::kCollective;
    message.number = part.collective = communicator_->num_collectives_++;
    for (int rank = 0; rank < communicator_->num_ranks(); ++rank) {
      if (rank != communicator_->rank()) communicator_->send(rank, message);
    }
  }
}

// ------------------------------------------------------------------------------------ what arrives

/// Takes what has arrived. Returns whether that is all.
bool Communicator::Operation::collect() {
  bool are_all_done = true;
  std::set<std::pair<Call::What, int>> waiting;  // sends and receives of a pair are in order
  for (Part& part : parts_) {
    const auto pair = std::pair(part.call.what, part.call.peer);
    if (!part.is_done && !waiting.contains(pair)) {
      switch (part.call.what) {
        case Call::What::kAllReduce:
        case Call::What::kAllGather:
          part.is_done = collect_collective(part);
          break;
        case Call::What::kSend:
          part.is_done = collect_send(part);
          break;
        case Call::What::kReceive:
          part.is_done = collect_receive(part);
          break;
      }
    }
    if (part.is_done) continue;
    are_all_done = false;
    waiting.insert(pair);
  }
  return are_all_done;
}

bool Communicator::Operation::collect_collective(Part& part) {
  const auto num_others = static_cast<std::size_t>(communicator_->num_ranks() - 1);
  const std::lock_guard lock(communicator_->mutex_);
  for (int rank = 0; rank < communicator_->num_ranks(); ++rank) {
    auto& queue = communicator_->inboxes_[static_cast<std::size_t>(rank)].collectives;
    if (rank == communicator_->rank() || part.others.contains(rank) || queue.empty()) continue;
    if (queue.front().number != part.collective) continue;
    check_part(part, rank, queue.front());
    part.others.emplace(rank, std::move(queue.front()));
    queue.pop_front();
  }
  return part.others.size() == num_others;
}

void Communicator::Operation::check_part(const Part& part, int rank, const Message& theirs) const {
  const Call& call = part.call;
  const auto what = static_cast<Call::What>(theirs.what);
  const auto type = static_cast<ncclDataType_t>(theirs.type);
  if (what == call.what && theirs.count == call.count && type == call.type &&
      theirs.reduction == static_cast<std::uint32_t>(call.reduction)) {
    return;
  }
  throw Fault("ranks differ: " + describe(call.what, call.count, call.type, communicator_->rank()) +
              " meets " + describe(what, theirs.count, type, rank));
}

bool Communicator::Operation::collect_send(const Part& part) {
  const std::lock_guard lock(communicator_->mutex_);
  auto& queue = communicator_->inboxes_[static_cast<std::size_t>(part.call.peer)].taken;
  if (queue.empty()) return false;
  const Message taken = std::move(queue.front());
  queue.pop_front();
  if (!taken.bytes.empty()) {
    throw Fault({reinterpret_cast<const char*>(taken.bytes.data()), taken.bytes.size()});
  }
  return true;
}

bool Communicator::Operation::collect_receive(Part& part) {
  const Call& call = part.call;
  Message sent;
  {
    const std::lock_guard lock(communicator_->mutex_);
    auto& queue = communicator_->inboxes_[static_cast<std::size_t>(call.peer)].sends;
    if (queue.empty()) return false;
    sent = std::move(queue.front());
    queue.pop_front();
  }
  const auto type = static_cast<ncclDataType_t>(sent.type);
  Message taken{.kind = Message::Kind::kTaken};
  std::string fault;
  if (sent.count != call.count || type != call.type) {
    fault = "ranks differ: " +
            describe(Call::What::kReceive, call.count, call.type, communicator_->rank()) +
            " meets " + describe(Call::What::kSend, sent.count, type, call.peer);
    const auto* const text = reinterpret_cast<const std::byte*>(fault.data());
    taken.bytes.assign(text, text + fault.size());
  }
  communicator_->send(call.peer, std::move(taken));
  if (!fault.empty()) throw Fault(fault);
  part.others.emplace(call.peer, std::move(sent));
  return true;
}

// ------------------------------------------------------------------------------------------
// results

void Communicator::Operation::write(const Part& part) const {
  const Call& call = part.call;
  if (call.what == Call::What::kReceive) {
    std::memcpy(call.to, part.others.at(call.peer).bytes.data(), call.bytes());
  }
  if (!call.is_collective()) return;
  std::vector<Bytes> by_rank;
  for (int rank = 0; rank < communicator_->num_ranks(); ++rank) {
    by_rank.push_back(rank == communicator_->rank() ? Bytes(part.own)
                                                    : bytes_of(part.others.at(rank)));
  }
  if (call.what == Call::What::kAllReduce) {
    const auto sums =
        ring_sum(by_rank, call.count, call.type, communicator_->seed_ + part.collective + 1);
    std::memcpy(call.to, sums.data(), sums.size());
    return;
  }
  std::byte* to = call.to;
  for (const Bytes bytes : by_rank) {
    std::memcpy(to, bytes.data(), bytes.size());
    to += bytes.size();
  }
}

void Communicator::Operation::poison() const {
  for (const Bytes bytes : writes()) {
    std::memset(const_cast<std::byte*>(bytes.data()), 0xFF, bytes.size());
  }
}

}  // namespace simt
