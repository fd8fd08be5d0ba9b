#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace satrap {

/// Connects to every port of 127.0.0.1 at which this process listens, as soon as it appears and
/// then again and again, from a thread of its own: strangers who hang up at once, send garbage or
/// zeros, or say nothing and stay. Ends with the object.
class Strangers {
 public:
  Strangers() {
    thread_ = std::thread([this] {
      while (!stop_) {
        for (const in_port_t port : listening_ports()) visit(port);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  }
  ~Strangers() {
    stop_ = true;
    thread_.join();
    for (const int fd : kept_) close(fd);
  }
  Strangers(const Strangers&) = delete;
  Strangers& operator=(const Strangers&) = delete;

  int num_visits() const { return num_visits_; }

 private:
  static constexpr int kMaxFd = 1024;
  static constexpr std::size_t kMaxKept = 64;

  static std::vector<in_port_t> listening_ports() {
    std::vector<in_port_t> ports;
    for (int fd = 0; fd < kMaxFd; ++fd) {
      int listens = 0;
      socklen_t size = sizeof(listens);
      if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) continue;
      sockaddr_in address{};
      size = sizeof(address);
      if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) continue;
      if (address.sin_family == AF_INET) ports.push_back(address.sin_port);
    }
    return ports;
  }

  void visit(in_port_t port) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = port;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
    // What is connected on loopback is connected at once.
    const int manner = num_visits_++ % 4;
    std::string words;
    if (manner == 1) words = std::string(4096, '\0');
    if (manner == 2) words = std::string(4096, 'x');
    if (!words.empty()) send(fd, words.data(), words.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (manner == 0) {
      close(fd);
      return;
    }
    kept_.push_back(fd);
    if (kept_.size() > kMaxKept) {
      close(kept_.front());
      kept_.erase(kept_.begin());
    }
  }

  std::atomic<bool> stop_{false};
  std::atomic<int> num_visits_{0};
  std::vector<int> kept_;  // of the thread
  std::thread thread_;
};

}  // namespace satrap
