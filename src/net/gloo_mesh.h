#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <gloo/transport/unbound_buffer.h>

#include "satrap/net/deadline.h"

namespace gloo::transport::tcp {
class Context;
class Device;
}  // namespace gloo::transport::tcp

namespace satrap::net {

/// Gloo's TCP transport with the teeth drawn that gloo's own classes show to a broken or hostile
/// peer:
///
/// * What Gloo answers with an exception on its event thread, and so with std::terminate (more
/// bytes
///   than the posted receive has, data nobody posted a receive for), closes the connection instead.
/// * What makes its event thread spin (data for a buffer that is gone, or of the old "bound" kind)
///   closes the connection.
/// * The end of a connection is told at once, on the event thread, also while a transfer is under
///   way, where Gloo itself wakes nobody.
///
/// Done by deriving from its classes, as Gloo's own TLS transport does; nothing of Gloo is changed.
/// One event thread per device, named "net-gloo".
using GlooDevice = gloo::transport::tcp::Device;
using GlooBuffer = gloo::transport::UnboundBuffer;

/// Whether this is the text of an exception of Gloo's that says that somebody's time was up.
bool is_gloo_timeout(std::string_view text);

/// A device bound to a numeric address. Throws Error(kUnavailable) if Gloo cannot, std::bad_alloc
/// or std::system_error where there is no memory or no thread for it.
std::shared_ptr<GlooDevice> make_gloo_device(const std::string& address);

/// `size` processes with a connection between every two, under construction or done; a Gloo
/// context.
class GlooMesh {
 public:
  /// Called on the event thread, without locks, at most once per peer: the connection has ended for
  /// another reason than close(). Must not block, and must not own the mesh.
  using OnDown = std::function<void(int peer, const std::string& reason)>;

  /// Listens for every peer. Setting up the connections may take until `deadline`.
  GlooMesh(std::shared_ptr<GlooDevice> device,
           int rank,
           int size,
           Deadline deadline,
           OnDown on_down);
  ~GlooMesh();  // closes
  GlooMesh(const GlooMesh&) = delete;
  GlooMesh& operator=(const GlooMesh&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// What `peer` must pass to its connect(rank(), ...). Bytes.
  std::string address_for(int peer) const;

  /// Blocks until the connection with `peer` stands. Throws NetError, latest at the deadline.
  void connect(int peer, const std::string& address);

  /// A buffer over memory that the caller owns and that must outlive it. See LinkBuffer.
  std::unique_ptr<GlooBuffer> make_buffer(void* memory, std::int64_t bytes) const;

  /// Closes all connections. After it nothing writes to or reads from any buffer's memory. Takes up
  /// to 10 ms a peer (a tick of Gloo's event loop). Wakes no waiting thread: abort the waits first.
  /// Thread-safe; must not be called by the event thread.
  void close() noexcept;

 private:
  const int rank_, size_;
  std::shared_ptr<gloo::transport::tcp::Context> context_;
};

/// The file that this program's calls of Gloo end in.
std::string gloo_path();

/// Throws Error(kUnavailable) unless this program's calls of Gloo end in libgloo.so: libtorch
/// carries another version under the same names, and serves them all if it was linked first.
void check_gloo_is_ours();

}  // namespace satrap::net
