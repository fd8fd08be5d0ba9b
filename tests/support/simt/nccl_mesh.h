#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace simt {

/// What a rank tells another.
struct Message {
  enum class Kind : std::uint32_t {
    kCollective,  // its part of one
    kSend,
    kTaken,     // a send has been received; its bytes: why it should not have been
    kFinalize,  // it has done all its operations
    kBye,       // its last message
  };
  Kind kind = Kind::kCollective;
  std::uint32_t what = 0, type = 0, reduction = 0;
  std::uint64_t number = 0;  // of the collective
  std::uint64_t count = 0;
  std::vector<std::byte> bytes{};
};

/// Sockets between each two ranks, which are threads or programs of this machine: abstract ones,
/// which nobody has to remove. One thread calls connect and then serve.
class Mesh {
 public:
  struct Hello {
    std::uint64_t rank = 0, num_ranks = 0;
    std::uint64_t device = 0;  // of the machine
  };

  Mesh(std::string name, Hello self);
  ~Mesh();
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  /// Waits for all ranks; false if it is stopped meanwhile. Throws std::runtime_error.
  bool connect();
  /// By rank, with one's own.
  const std::vector<Hello>& hellos() const { return hellos_; }

  /// After the thread that serves has ended.
  void close();

  /// Passes on what arrives, and calls `lost` once if a rank is gone without a last message.
  /// `idle` is called after messages and wake(), and now and then while it returns true. Returns
  /// after a stop.
  void serve(const std::function<void(int rank, Message)>& receive,
             const std::function<void(int rank)>& lost,
             const std::function<bool()>& idle);

  // Of any thread:
  void send(int rank, Message message);
  void wake();
  /// With `flush`: after the messages have been written.
  void stop(bool flush);

 private:
  struct Peer {
    int socket = -1;
    std::deque<std::vector<std::byte>> out;  // under mutex_
    std::size_t written = 0;                 // of the first
    std::vector<std::byte> in;
    bool has_said_bye = false;
  };

  bool wait(int socket, short events, int timeout_ms);
  bool read_hello(int socket, Hello& hello);
  void send_hello(int socket) const;
  bool connect_to(std::size_t rank);
  void accept(int listener, std::size_t count, bool& is_stopped);
  bool write_some(Peer& peer);
  bool read_some(Peer& peer, const std::function<void(Message)>& receive);
  bool is_to_end();

  std::string name_;
  Hello self_;
  std::vector<Hello> hellos_;
  std::vector<Peer> peers_;
  int wake_ = -1;
  std::mutex mutex_;
  bool stopped_ = false, flushes_ = false;
};

}  // namespace simt
