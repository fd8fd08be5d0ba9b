#include <algorithm>
#include <cstring>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "satrap/collective/communicator.h"
#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/net/rank_links.h"

namespace satrap::collective {
namespace {

using net::Deadline;
using net::Transfers;

// Every transfer of a call has the same slot; Gloo keeps the order within it. The number of the
// call is part of it, so that ranks that are out of step meet a timeout and not each other's bytes.
constexpr std::uint64_t kLeaveSlot = 2;
constexpr std::uint64_t kFirstCallSlot = 16;

// How long an ending rank waits for the others to end too.
constexpr std::int64_t kLeaveMs = 2000;

class GlooCommunicator final : public Communicator {
 public:
  GlooCommunicator(const net::Endpoint& endpoint,
                   net::Rendezvous& store,
                   const std::string& name,
                   std::int64_t rank,
                   std::int64_t size,
                   Deadline deadline)
      : rank_(static_cast<int>(rank)),
        size_(static_cast<int>(size)),
        links_(endpoint, {store, "collective/" + name, rank, size}, deadline) {}

  ~GlooCommunicator() override {
    if (std::uncaught_exceptions() == num_exceptions_) leave();
    GlooCommunicator::close();
  }

  void close() override { links_.close("communicator closed"); }

  std::int64_t rank() const override { return rank_; }
  std::int64_t size() const override { return size_; }

  void all_reduce_sum(std::span<float> values, Deadline deadline) override {
    all_reduce(values, deadline);
  }
  void all_reduce_sum(std::span<double> values, Deadline deadline) override {
    all_reduce(values, deadline);
  }
  std::unique_ptr<Reduction> begin_all_reduce_sum(std::span<float> values) override {
    return std::make_unique<Sum<float>>(*this, values);
  }

  void broadcast(std::span<std::byte> bytes, std::int64_t root, Deadline deadline) override {
    SATRAP_CHECK(root >= 0 && root < size_, "broadcast from rank ", root, " of ", size_);
    // Gloo reports to a receiver more bytes than it has room for, but not fewer.
    std::uint64_t size = bytes.size();
    const std::span<std::byte> size_bytes = std::as_writable_bytes(std::span(&size, 1));
    Transfers transfers(links_, next_slot_++);
    if (root == rank_) {
      for (int peer = 0; peer < size_; ++peer) {
        if (peer == rank_) continue;
        transfers.send(peer, size_bytes);
        transfers.send(peer, bytes);
      }
    } else {
      transfers.receive(static_cast<int>(root), size_bytes);
      transfers.receive(static_cast<int>(root), bytes);
      transfers.wait_for_first(static_cast<int>(root), deadline);
      if (size != bytes.size()) {
        links_.fail(
            concat("broadcast of ", size, " bytes, rank ", rank_, " has room for ", bytes.size()));
      }
    }
    transfers.wait(deadline);
  }

  void all_to_all(std::span<const std::span<const std::byte>> to,
                  std::span<const std::span<std::byte>> from,
                  Deadline deadline) override {
    const auto ranks = static_cast<std::size_t>(size_);
    SATRAP_CHECK(to.size() == ranks && from.size() == ranks, "all_to_all of ", to.size(), " and ",
                 from.size(), " parts among ", ranks, " ranks");
    // As broadcast: every part after its size.
    std::vector<std::uint64_t> sizes(2 * ranks);
    const auto size_bytes = [&](std::size_t i) {
      return std::as_writable_bytes(std::span(sizes).subspan(i, 1));
    };
    Transfers transfers(links_, next_slot_++);
    for (std::size_t r = 0; r < ranks; ++r) {
      const int peer = static_cast<int>(r);
      if (peer == rank_) continue;
      sizes[r] = to[r].size();
      transfers.receive(peer, size_bytes(ranks + r));
      transfers.receive(peer, from[r]);
      transfers.send(peer, size_bytes(r));
      transfers.send(peer, to[r]);
    }
    const std::size_t me = static_cast<std::size_t>(rank_);
    if (to[me].size() != from[me].size()) {
      links_.fail(concat("all_to_all: rank ", rank_, " has ", to[me].size(),
                         " bytes for itself and room for ", from[me].size()));
    }
    std::ranges::copy(to[me], from[me].begin());
    for (std::size_t r = 0; r < ranks; ++r) {
      if (r == me) continue;
      transfers.wait_for_first(static_cast<int>(r), deadline);
      const std::uint64_t size = sizes[ranks + r];
      if (size != from[r].size()) {
        links_.fail(concat("all_to_all: rank ", r, " sends ", size, " bytes, rank ", rank_,
                           " has room for ", from[r].size()));
      }
    }
    transfers.wait(deadline);
  }

  void barrier(Deadline deadline) override { meet_all(next_slot_++, deadline); }

 private:
  void meet_all(std::uint64_t slot, Deadline deadline) {
    std::byte mine{};
    std::vector<std::byte> theirs(static_cast<std::size_t>(size_));
    Transfers transfers(links_, slot);
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      transfers.receive(peer, std::span(theirs).subspan(static_cast<std::size_t>(peer), 1));
      transfers.send(peer, {&mine, 1});
    }
    transfers.wait(deadline);
  }

  // The end of a connection ends the waits of every rank, also for a third one, and drops bytes
  // that the kernel has not delivered. So no rank closes before all have arrived here: until then
  // one of them may still be within its last call. Ranks that are here need no more bytes.
  void leave() noexcept {
    try {
      meet_all(kLeaveSlot, Deadline::after_ms(kLeaveMs));
    } catch (const std::exception& error) {
      // Another rank has closed earlier, or is out of step.
      log_debug("communicator closed alone: {}", error.what());
    }
  }

  // Each rank sums one slice of the values of all, in the order of the ranks, and hands the sums
  // out. Every value crosses each rank's wire twice, less one part in size().
  template <class T>
  class Sum final : public Reduction {
   public:
    Sum(GlooCommunicator& communicator, std::span<T> values)
        : communicator_(communicator),
          me_(static_cast<std::size_t>(communicator.rank_)),
          num_ranks_(static_cast<std::size_t>(communicator.size_)),
          values_(values),
          mine_(slice(me_)),
          scratch_(communicator.take_scratch(stride() * (num_ranks_ + 1))),
          gather_(communicator.links_, communicator.next_slot_++),
          spread_(communicator.links_, communicator.next_slot_++) {
      for (std::size_t peer = 0; peer < num_ranks_; ++peer) {
        if (peer == me_) continue;
        gather_.receive(static_cast<int>(peer), std::as_writable_bytes(part(peer)));
        gather_.send(static_cast<int>(peer), std::as_writable_bytes(slice(peer)));
      }
    }

    void add(Deadline deadline) override {
      gather_.wait(deadline);
      const std::span<T> sum = part(num_ranks_);
      for (std::size_t of = 0; of < num_ranks_; ++of) {
        const std::span<const T> term = of == me_ ? std::span<const T>(mine_) : part(of);
        if (of == 0) {
          std::copy(term.begin(), term.end(), sum.begin());
        } else {
          for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += term[i];
        }
      }
      std::copy(sum.begin(), sum.end(), mine_.begin());
      is_added_ = true;
      for (std::size_t peer = 0; peer < num_ranks_; ++peer) {
        if (peer == me_) continue;
        spread_.receive(static_cast<int>(peer), std::as_writable_bytes(slice(peer)));
        spread_.send(static_cast<int>(peer), std::as_writable_bytes(mine_));
      }
    }

    void finish(Deadline deadline) override {
      SATRAP_CHECK(is_added_, "a sum is finished that was not added");
      spread_.wait(deadline);
      gather_.clear();  // before its memory serves another sum
      communicator_.free_scratch_.push_back(std::move(scratch_));
    }

   private:
    std::span<T> slice(std::size_t of) const {
      const std::size_t begin = values_.size() * of / num_ranks_;
      return values_.subspan(begin, values_.size() * (of + 1) / num_ranks_ - begin);
    }
    std::size_t stride() const {
      constexpr std::size_t kAlignment = 64;
      return (mine_.size_bytes() + kAlignment - 1) / kAlignment * kAlignment;
    }
    // What rank `of` has for this rank's slice; of num_ranks_: the sum.
    std::span<T> part(std::size_t of) {
      return {reinterpret_cast<T*>(scratch_.data() + stride() * of), mine_.size()};
    }

    GlooCommunicator& communicator_;
    const std::size_t me_, num_ranks_;
    const std::span<T> values_, mine_;
    std::vector<std::byte> scratch_;
    Transfers gather_, spread_;  // they end before the memory does
    bool is_added_ = false;
  };

  template <class T>
  void all_reduce(std::span<T> values, Deadline deadline) {
    Sum<T> sum(*this, values);
    sum.add(deadline);
    sum.finish(deadline);
  }

  std::vector<std::byte> take_scratch(std::size_t bytes) {
    std::vector<std::byte> scratch;
    if (!free_scratch_.empty()) {
      scratch = std::move(free_scratch_.back());
      free_scratch_.pop_back();
    }
    if (scratch.size() < bytes) scratch.resize(bytes);
    return scratch;
  }

  const int rank_, size_;
  const int num_exceptions_ = std::uncaught_exceptions();
  net::RankLinks links_;
  std::uint64_t next_slot_ = kFirstCallSlot;
  std::vector<std::vector<std::byte>> free_scratch_;
};

}  // namespace

std::unique_ptr<Communicator> make_gloo_communicator(const net::Endpoint& endpoint,
                                                     net::Rendezvous& store,
                                                     const std::string& name,
                                                     std::int64_t rank,
                                                     std::int64_t size,
                                                     Deadline deadline) {
  SATRAP_CHECK(rank >= 0 && rank < size, "rank ", rank, " of ", size);
  return std::make_unique<GlooCommunicator>(endpoint, store, name, rank, size, deadline);
}

}  // namespace satrap::collective
