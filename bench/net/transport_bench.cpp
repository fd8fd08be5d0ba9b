// Pull and push of rows between two processes over loopback, the same bytes over three transports
// in one run: TCP sockets, Gloo's unmodified unbound buffers, and net::Connection.
//
//   net_transport_bench [SECONDS [ROUNDS [MESSAGE_KIB ...]]]
//
// One exchange is a pull (8 bytes per key out, the rows back) and a push (keys and rows out, an
// empty answer back). The table's message size is that of the rows in either. kDepth pulls and
// kDepth pushes are in flight at a time. rows/s counts rows pulled and rows pushed; CPU is the sum
// over both processes. Medians over rounds; within a round the transports take turns, because the
// machine may be shared.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "satrap/net/connection.h"
#include "satrap/net/endpoint.h"
#include "satrap/net/file_rendezvous.h"
#include "satrap/net/server.h"
#include "src/net/socket.h"
#include "tests/support/temporary_directory.h"

namespace satrap::net {
namespace {

constexpr std::size_t kDepth = 4;
constexpr Op kPull = 1, kPush = 2;

Deadline soon() { return Deadline::after_ms(60'000); }

struct Shape {
  std::int64_t message_bytes = 0;
  std::int64_t dim = 0;
  std::int64_t rows() const { return message_bytes / (4 * dim); }
  std::int64_t key_bytes() const { return rows() * 8; }
  std::int64_t request_bytes(Op op) const {
    return key_bytes() + (op == kPush ? message_bytes : 0);
  }
  std::int64_t bytes() const { return 2 * (key_bytes() + message_bytes); }  // of an exchange
};

std::vector<std::byte> memory(std::int64_t bytes) {
  return std::vector<std::byte>(static_cast<std::size_t>(bytes), std::byte{1});
}

/// Both processes' part of one transport. A client calls `start` once it is connected and then runs
/// the given number of exchanges; a server ends with its client.
struct Transport {
  const char* name;
  void (*serve)(const std::string& folder, const Shape& shape);
  void (*run)(const std::string& folder,
              const Shape& shape,
              std::int64_t exchanges,
              const std::function<void()>& start);
};

// ------------------------------------------------------------------------------------ TCP sockets

void set_blocking(const Fd& fd) {
  fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
}

void write_all(const Fd& fd, const void* data, std::int64_t bytes) {
  const auto* from = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    const ssize_t n = send(fd.get(), from, static_cast<std::size_t>(bytes), MSG_NOSIGNAL);
    if (n <= 0) throw NetError(NetFailure::kClosed, "write");
    from += n;
    bytes -= n;
  }
}

void read_all(const Fd& fd, void* data, std::int64_t bytes) {
  const ssize_t n = recv(fd.get(), data, static_cast<std::size_t>(bytes), MSG_WAITALL);
  if (n != bytes) throw NetError(NetFailure::kClosed, "read");
}

void serve_tcp(const std::string& folder, const Shape& shape) {
  FileRendezvous store(folder);
  const Fd listener = listen_tcp("127.0.0.1", 0);
  store.set("tcp", std::to_string(local_port(listener)));
  wait_ready(listener.get(), POLLIN, soon());
  const Fd fd = accept_tcp(listener);
  set_blocking(fd);
  auto request = memory(shape.request_bytes(kPush));
  const auto reply = memory(shape.message_bytes);
  for (;;) {
    Op op = 0;
    read_all(fd, &op, sizeof(op));
    read_all(fd, request.data(), shape.request_bytes(op));
    write_all(fd, &op, sizeof(op));
    if (op == kPull) write_all(fd, reply.data(), shape.message_bytes);
  }
}

// One thread writes and one reads: a single thread could deadlock with the server.
void run_tcp(const std::string& folder,
             const Shape& shape,
             std::int64_t exchanges,
             const std::function<void()>& start) {
  FileRendezvous store(folder);
  const Fd fd = connect_tcp("127.0.0.1", std::stoll(store.wait("tcp", soon())), soon());
  set_blocking(fd);
  start();
  std::counting_semaphore<> credits(2 * kDepth);
  std::thread sender([&] {
    const auto request = memory(shape.request_bytes(kPush));
    for (std::int64_t i = 0; i < exchanges; ++i) {
      for (const Op op : {kPull, kPush}) {
        credits.acquire();
        write_all(fd, &op, sizeof(op));
        write_all(fd, request.data(), shape.request_bytes(op));
      }
    }
  });
  auto reply = memory(shape.message_bytes);
  for (std::int64_t i = 0; i < 2 * exchanges; ++i) {
    Op op = 0;
    read_all(fd, &op, sizeof(op));
    if (op == kPull) read_all(fd, reply.data(), shape.message_bytes);
    credits.release();
  }
  sender.join();
}

// ------------------------------------------------------------------------- Gloo's unbound buffers

constexpr std::uint64_t kRequests = 0, kReplies = 1;

std::shared_ptr<gloo::rendezvous::Context> join_gloo(const std::string& folder, int rank) {
  auto device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr("127.0.0.1"));
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, 2);
  gloo::rendezvous::FileStore store(folder);
  context->connectFullMesh(store, device);
  return context;
}

// Memory and Gloo handles of requests or replies, as many as are in flight.
struct Buffers {
  Buffers(gloo::Context& context, std::size_t count, std::int64_t bytes) {
    for (std::size_t i = 0; i < count; ++i) {
      data.push_back(memory(std::max<std::int64_t>(bytes, 4)));
      handles.push_back(context.createUnboundBuffer(data.back().data(), data.back().size()));
    }
  }
  std::vector<std::vector<std::byte>> data;
  std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> handles;
};

// Pulls and pushes alternate, so both sides know every size and need no headers.
void serve_gloo(const std::string& folder, const Shape& shape) {
  const auto context = join_gloo(folder, 1);
  Buffers requests(*context, 2 * kDepth, shape.request_bytes(kPush));
  Buffers replies(*context, 2 * kDepth, shape.message_bytes);
  for (auto& handle : requests.handles) handle->recv(0, kRequests);
  for (std::size_t i = 0;; ++i) {
    const std::size_t k = i % (2 * kDepth);
    if (i >= 2 * kDepth) replies.handles[k]->waitSend();
    requests.handles[k]->waitRecv();
    replies.handles[k]->send(0, kReplies, 0,
                             i % 2 == 0 ? static_cast<std::size_t>(shape.message_bytes) : 4);
    requests.handles[k]->recv(0, kRequests);
  }
}

void run_gloo(const std::string& folder,
              const Shape& shape,
              std::int64_t exchanges,
              const std::function<void()>& start) {
  const auto context = join_gloo(folder, 0);
  Buffers requests(*context, 2 * kDepth, shape.request_bytes(kPush));
  Buffers replies(*context, 2 * kDepth, shape.message_bytes);
  start();
  const auto finish = [&](std::size_t k) {
    replies.handles[k]->waitRecv();
    requests.handles[k]->waitSend();
  };
  const auto count = static_cast<std::size_t>(2 * exchanges);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t k = i % (2 * kDepth);
    if (i >= 2 * kDepth) finish(k);
    replies.handles[k]->recv(1, kReplies);
    const Op op = i % 2 == 0 ? kPull : kPush;
    requests.handles[k]->send(1, kRequests, 0, static_cast<std::size_t>(shape.request_bytes(op)));
  }
  for (std::size_t i = count - std::min(count, 2 * kDepth); i < count; ++i)
    finish(i % (2 * kDepth));
  std::_Exit(0);  // without Gloo's teardown; receives posted at the other side do not matter
}

// ----------------------------------------------------------------------------- net::Connection

void serve_net(const std::string& folder, const Shape& shape) {
  FileRendezvous store(folder);
  const Endpoint endpoint{EndpointOptions{}};
  std::atomic<bool> was_used{false};
  const Server server(endpoint, store, "bench", {}, [&](std::unique_ptr<ServerCall>& call) {
    was_used = true;
    if (call->op() == kPull) call->reply_space(shape.message_bytes);
    if (call->op() == kPull) call->send();
    if (call->op() == kPush) call->reply({});
  });
  while (!was_used || server.num_connections() > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void run_net(const std::string& folder,
             const Shape& shape,
             std::int64_t exchanges,
             const std::function<void()>& start) {
  FileRendezvous store(folder);
  const Endpoint endpoint{EndpointOptions{}};
  Connection connection(endpoint, store, "bench", "client", soon());
  start();
  std::deque<Ticket> under_way;
  for (std::int64_t i = 0; i < 2 * exchanges; ++i) {
    if (under_way.size() == 2 * kDepth) {
      under_way.front().wait();
      under_way.pop_front();
    }
    const Op op = i % 2 == 0 ? kPull : kPush;
    const RequestBuffer request(endpoint, shape.request_bytes(op));
    const std::int64_t expected = op == kPull ? shape.message_bytes : 0;
    under_way.push_back(connection.call_for_any_size(op, request, soon(), {{}, false, expected}));
  }
  for (Ticket& ticket : under_way) ticket.wait();
}

// --------------------------------------------------------------------------------- measurement

struct Result {
  double seconds = 0, cpu_seconds = 0;
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double cpu_seconds(const rusage& usage) {
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

pid_t start_child(const std::function<void()>& body) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  signal(SIGPIPE, SIG_IGN);
  try {
    body();
  } catch (const std::exception&) {
    std::_Exit(0);  // a server ends this way once its client has gone
  }
  std::_Exit(0);
}

double cpu_of(pid_t pid) {
  rusage usage{};
  wait4(pid, nullptr, 0, &usage);
  return cpu_seconds(usage);
}

Result measure(const Transport& transport, const Shape& shape, std::int64_t exchanges) {
  const TemporaryDirectory folder;
  std::array<int, 2> pipes{};
  if (pipe(pipes.data()) != 0) std::exit(1);
  const pid_t server = start_child([&] { transport.serve(folder.path(), shape); });
  const pid_t client = start_child([&] {
    transport.run(folder.path(), shape, exchanges, [&] {
      const double begin = now();
      static_cast<void>(!write(pipes[1], &begin, sizeof(begin)));
    });
  });
  Result result;
  double begin = 0;
  if (read(pipes[0], &begin, sizeof(begin)) != sizeof(begin)) std::exit(1);
  result.cpu_seconds = cpu_of(client);
  result.seconds = now() - begin;
  result.cpu_seconds += cpu_of(server);
  close(pipes[0]);
  close(pipes[1]);
  return result;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

void compare(const Shape& shape, double seconds, int rounds) {
  constexpr std::array<Transport, 3> kTransports{{{"tcp", serve_tcp, run_tcp},
                                                  {"gloo", serve_gloo, run_gloo},
                                                  {"satrap", serve_net, run_net}}};
  std::array<std::vector<double>, 3> rates, cpus;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t t = 0; t < kTransports.size(); ++t) {
      const std::int64_t few = std::max<std::int64_t>(20, (64 << 20) / shape.bytes());
      const Result trial = measure(kTransports[t], shape, few);
      const auto exchanges = std::max(
          few, static_cast<std::int64_t>(static_cast<double>(few) * seconds / trial.seconds));
      const Result result = measure(kTransports[t], shape, exchanges);
      rates[t].push_back(static_cast<double>(exchanges) / result.seconds);
      cpus[t].push_back(result.cpu_seconds / static_cast<double>(exchanges));
    }
  }
  const double gloo = median(rates[1]);
  for (std::size_t t = 0; t < kTransports.size(); ++t) {
    const double rate = median(rates[t]);
    const auto rows = static_cast<double>(2 * shape.rows());
    std::printf("%8ld %4ld  %-7s %8.2f %10.2f %10.1f %9.0f%%\n", shape.message_bytes >> 10,
                shape.dim, kTransports[t].name, 1e-9 * rate * static_cast<double>(shape.bytes()),
                1e-6 * rate * rows, 1e9 * median(cpus[t]) / rows, 100 * rate / gloo);
  }
  std::fflush(stdout);
}

}  // namespace
}  // namespace satrap::net

int main(int argc, char** argv) {
  using satrap::net::compare;
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1.0;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  std::vector<std::int64_t> sizes;
  for (int i = 3; i < argc; ++i) sizes.push_back(std::atoll(argv[i]) << 10);
  if (sizes.empty()) sizes = {64 << 10, 256 << 10, 1 << 20, 4 << 20};
  std::printf("%8s %4s  %-7s %8s %10s %10s %10s\n", "KiB", "dim", "", "GB/s", "Mrows/s",
              "CPU ns/row", "of gloo");
  for (const std::int64_t dim : {16, 64}) {
    for (const std::int64_t bytes : sizes) compare({bytes, dim}, seconds, rounds);
  }
  return 0;
}
