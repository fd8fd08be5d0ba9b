#pragma once

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "satrap/net/net_error.h"
#include "satrap/net/server.h"
#include "tests/fuzz/fuzz.h"

namespace satrap::fuzz {

/// Bytes at the alignment of a message, with nothing behind them that may be read.
class MessageBytes {
 public:
  explicit MessageBytes(std::size_t size) : size_(size) {
    void* memory = nullptr;
    if (posix_memalign(&memory, 64, std::max<std::size_t>(size, 1)) != 0) fail("no memory");
    bytes_.reset(static_cast<std::byte*>(memory));
  }
  std::span<std::byte> span() const { return {bytes_.get(), size_}; }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> bytes_;
  std::size_t size_;
};

/// Counts answers, from any thread.
class Answers {
 public:
  void add() {
    const std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  void wait_for_one() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(4), [&] { return count_ > 0; })) {
      fail("no answer");
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

}  // namespace satrap::fuzz

namespace satrap::net {

// A request without a connection, in the place of the one of `net`, which a program with this
// header is not linked with.
struct ServerCall::State {
  Op op;
  RequestTag tag;
  fuzz::MessageBytes payload;
  fuzz::Answers& answers;
  std::string client = "fuzzer";
  std::unique_ptr<fuzz::MessageBytes> answer = nullptr;
  bool is_answered = false;

  void end() {
    if (std::exchange(is_answered, true)) fuzz::fail("a second answer to one request");
    answers.add();
  }
};

ServerCall::ServerCall(std::unique_ptr<State> state) : state_(std::move(state)) {}
ServerCall::~ServerCall() {
  if (!state_->is_answered) state_->end();
}
Op ServerCall::op() const { return state_->op; }
const RequestTag& ServerCall::tag() const { return state_->tag; }
const std::string& ServerCall::client_name() const { return state_->client; }
std::span<const std::byte> ServerCall::payload() const { return state_->payload.span(); }
std::int64_t ServerCall::reply_capacity() const { return -1; }
bool ServerCall::is_answered() const { return state_->is_answered; }
void ServerCall::send() { state_->end(); }
void ServerCall::fail(const std::string&) { state_->end(); }

std::span<std::byte> ServerCall::reply_space(std::int64_t bytes) {
  if (state_->answer) fuzz::fail("a second answer to one request");
  if (bytes < 0 || bytes > std::int64_t{64} << 20) {
    throw NetError(NetFailure::kProtocol, "the client has no room for this answer");
  }
  state_->answer = std::make_unique<fuzz::MessageBytes>(static_cast<std::size_t>(bytes));
  return state_->answer->span();
}

void ServerCall::reply(std::span<const std::byte> bytes) {
  const auto space = reply_space(std::ssize(bytes));
  if (!bytes.empty()) std::memcpy(space.data(), bytes.data(), bytes.size());
  send();
}

}  // namespace satrap::net
