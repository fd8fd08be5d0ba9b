#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "tests/support/simt/nccl_mesh.h"

namespace simt {

/// A call of NCCL's, of one rank.
struct Call {
  enum class What : std::uint32_t { kAllReduce, kAllGather, kSend, kReceive };
  What what = What::kAllReduce;
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclInt8;
  ncclRedOp_t reduction = ncclSum;
  int peer = -1;  // of sends and receives

  bool is_collective() const { return what == What::kAllReduce || what == What::kAllGather; }
  std::size_t bytes() const;  // that this rank gives, or receives
};

/// A rank of a communicator. Its calls become work of a stream, one of each group; it begins at the
/// head of its stream after the communicator's earlier work, and is done when all ranks have done
/// their part. A send is done when its receive has begun.
///
/// Nonblocking communicators queue the work in a later ncclCommGetAsyncError; a program that does
/// not ask whether a call has ended misses it. Seeds decide how much later, and how long work waits
/// before it begins and ends.
///
/// Calls of ranks that do not fit are a Fault on each of them. A rank that is gone is waited for
/// for ever, as between GPUs that share memory; with SIMT_NCCL_DEATH=error it is an asynchronous
/// error. Work that is aborted leaves NaNs.
///
/// While a rank of another program or thread needs this one's work, it runs, whoever waits.
class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  /// Joins in the background. `seed`: of the sums' order, the same on all ranks.
  Communicator(const std::string& name, std::uint64_t seed, Mesh::Hello self, int device);
  ~Communicator();

  int rank() const { return static_cast<int>(self_.rank); }
  int num_ranks() const { return static_cast<int>(self_.num_ranks); }
  int device() const { return device_; }
  bool blocking = true;

  /// How it is; what a nonblocking communicator has still to do goes on.
  ncclResult_t status();
  std::string last_error();

  /// Queues them now, or if it is nonblocking later. The caller has checked them.
  ncclResult_t issue(std::vector<Call> calls, cudaStream_t stream);

  /// Waits until nothing is in progress.
  ncclResult_t wait();
  ncclResult_t finalize();  // blocks if it is blocking
  /// Waits for its own work, then leaves. Blocks.
  void leave();
  /// Ends all work at once, then leaves.
  void abort();

 private:
  class Operation;
  struct Inbox {
    std::deque<Message> collectives, sends, taken;
    bool has_finalized = false;  // or is gone
  };

  void serve();
  void check_devices();
  void receive(int rank, Message message);
  void lose(int rank);
  bool help();
  bool is_asked();
  void queue(std::vector<Call> calls, cudaStream_t stream);
  Work make_work(const std::vector<Call>& calls);
  void finish(std::uint64_t number);
  bool has_finished();
  bool proceed_to_finalize();
  void send(int rank, Message message);

  const std::uint64_t seed_;
  const Mesh::Hello self_;
  const int device_;
  Mesh mesh_;

  std::mutex mutex_;  // for what follows; a caller may have the turn, and takes no turn under it
  std::vector<Inbox> inboxes_;
  ncclResult_t joined_ = ncclInProgress, error_ = ncclSuccess;
  std::string last_error_;
  bool is_aborted_ = false, is_finalizing_ = false, has_told_ = false;
  struct Later {
    std::vector<Call> calls;
    cudaStream_t stream = nullptr;
    std::uint64_t num_questions = 0;
  };
  std::optional<Later> later_;
  std::uint64_t num_queued_ = 0, num_finished_ = 0;  // operations
  std::uint64_t num_collectives_ = 0;                // that have begun

  std::thread thread_;  // last
};

}  // namespace simt
