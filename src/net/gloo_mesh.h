#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <gloo/transport/unbound_buffer.h>

#include "src/net/socket.h"

namespace gloo::transport::tcp {
class Context;
class Device;
}  // namespace gloo::transport::tcp

namespace satrap::net {

/// Gloo's TCP transport, made robust against broken or hostile peers:
///
/// * Data that make Gloo throw on its event thread, and so call std::terminate (more bytes than the
///   posted receive has, data without a posted receive), close the connection instead.
/// * Data that make its event thread spin (for a buffer that is gone, or of the old "bound" kind)
///   close the connection.
/// * The end of a connection is reported at once, on the event thread, also during a transfer,
///   where Gloo itself wakes no thread.
///
/// The classes derive from Gloo's, as its own TLS transport does; Gloo is not changed. One event
/// thread per device, named "net-gloo".
using GlooDevice = gloo::transport::tcp::Device;
using GlooBuffer = gloo::transport::UnboundBuffer;

/// What an exception of Gloo's says, without the place in its sources that it begins with.
std::string gloo_reason(std::string_view text);

/// Whether this is the text of a timeout exception of Gloo's.
bool is_gloo_timeout(std::string_view text);

/// A device: an event thread. Throws Error(kUnavailable) if Gloo cannot make one, std::bad_alloc or
/// std::system_error if memory or threads are exhausted.
std::shared_ptr<GlooDevice> make_gloo_device();

/// `size` processes with a connection between every two, under construction or done; a Gloo
/// context. Gloo neither listens nor connects: anybody could take the place of the peer that it
/// waits for. It gets sockets whose other end has proved who it is (handshake.h).
class GlooMesh {
 public:
  /// Called on the event thread, without locks, at most once per peer: the connection has ended for
  /// another reason than close(). Must not block, and must not own the mesh.
  using OnDown = std::function<void(int peer, const std::string& reason)>;

  /// Throws NetError(kClosed) if there are not enough descriptors or memory.
  GlooMesh(std::shared_ptr<GlooDevice> device, int rank, int size, OnDown on_down);
  ~GlooMesh();  // closes
  GlooMesh(const GlooMesh&) = delete;
  GlooMesh& operator=(const GlooMesh&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Makes `socket` the connection to `peer`, once per peer. Throws NetError(kClosed) if the mesh
  /// has been closed.
  void adopt(int peer, Fd socket);

  /// A buffer over memory that the caller owns and that must outlive it. See LinkBuffer.
  std::unique_ptr<GlooBuffer> make_buffer(void* memory, std::int64_t bytes) const;

  /// Closes all connections. Afterwards nothing accesses any buffer's memory. Takes up to 10 ms per
  /// peer (a tick of Gloo's event loop). Wakes no waiting thread: abort the waits first.
  /// Thread-safe; must not be called by the event thread.
  void close() noexcept;

 private:
  const int rank_, size_;
  std::shared_ptr<gloo::transport::tcp::Context> context_;
};

/// The file that contains the Gloo that this program calls.
std::string gloo_path();

/// Throws Error(kUnavailable) unless this program's calls of Gloo reach libgloo.so: a
/// library such as libtorch contains another version under the same names, which gets all calls if
/// it was linked first.
void check_gloo_is_ours();

}  // namespace satrap::net
