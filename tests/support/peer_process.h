#pragma once

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace satrap {

/// Another process of a test: a second instance of the test program that runs a role registered
/// with PeerRole instead of tests, and ends when the role returns. Killed at the end of its scope.
class PeerProcess {
 public:
  PeerProcess(const std::string& role, const std::string& argument) {
    pid_ = fork();
    if (pid_ != 0) return;
    setenv("SATRAP_TEST_PEER", role.c_str(), 1);
    setenv("SATRAP_TEST_PEER_ARGUMENT", argument.c_str(), 1);
    execl("/proc/self/exe", "peer", static_cast<char*>(nullptr));
    _exit(127);
  }
  ~PeerProcess() {
    if (pid_ <= 0) return;
    send(SIGKILL);
    send(SIGCONT);
    wait();
  }
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  void send(int signal) const { kill(pid_, signal); }

  /// Sends SIGSTOP and waits until the process has stopped.
  void stop() const {
    send(SIGSTOP);
    int status = 0;
    waitpid(pid_, &status, WUNTRACED);
  }

  /// Waits for its end; returns the exit status, or minus the signal that ended it.
  int wait() {
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  pid_t pid_ = -1;
};

/// Defines, at namespace scope of a test file, the role that PeerProcess(name, argument) runs.
class PeerRole {
 public:
  using Body = std::function<void(const std::string& argument)>;

  PeerRole(const std::string& name, Body body) {
    if (roles().empty()) testing::AddGlobalTestEnvironment(new Runner);
    roles()[name] = std::move(body);
  }

 private:
  class Runner : public testing::Environment {
   public:
    void SetUp() override {
      const char* role = std::getenv("SATRAP_TEST_PEER");
      if (role == nullptr) return;
      try {
        roles().at(role)(std::getenv("SATRAP_TEST_PEER_ARGUMENT"));
      } catch (const std::exception& error) {
        std::fprintf(stderr, "peer '%s': %s\n", role, error.what());
        _exit(1);
      }
      _exit(0);
    }
  };

  static std::map<std::string, Body>& roles() {
    static std::map<std::string, Body> roles;
    return roles;
  }
};

}  // namespace satrap
