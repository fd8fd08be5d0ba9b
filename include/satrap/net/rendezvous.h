#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "satrap/net/deadline.h"

namespace satrap::net {

/// A few small named values that all processes of a job see: their meeting point before they are
/// connected. All functions are thread-safe and throw NetError or Error(kIo) if the store cannot be
/// reached. Values are bytes; keys are text of at most kMaxKeyBytes.
class Rendezvous {
 public:
  static constexpr std::int64_t kMaxKeyBytes = 512;
  static constexpr std::int64_t kMaxValueBytes = 1 << 20;

  virtual ~Rendezvous() = default;

  /// Sets a value, replacing an older one.
  virtual void set(const std::string& key, const std::string& value) = 0;

  virtual std::optional<std::string> get(const std::string& key) = 0;

  /// The value of `key` as soon as there is one. Throws NetError(kTimeout) at the deadline.
  virtual std::string wait(const std::string& key, Deadline deadline) = 0;

  /// Adds `amount` to a counter, atomically, and returns its new value. A missing one counts from
  /// 0. Counters are values too: decimal text.
  virtual std::int64_t add(const std::string& key, std::int64_t amount) = 0;

  virtual void erase(const std::string& key) = 0;
};

/// A view of another store in which every key has a prefix. A restarted job uses a new prefix
/// ("attempt-2/"), so that it never sees values of the previous attempt's processes.
class PrefixRendezvous : public Rendezvous {
 public:
  PrefixRendezvous(std::string prefix, std::shared_ptr<Rendezvous> store)
      : prefix_(std::move(prefix)), store_(std::move(store)) {}

  void set(const std::string& key, const std::string& value) override {
    store_->set(prefix_ + key, value);
  }
  std::optional<std::string> get(const std::string& key) override {
    return store_->get(prefix_ + key);
  }
  std::string wait(const std::string& key, Deadline deadline) override {
    return store_->wait(prefix_ + key, deadline);
  }
  std::int64_t add(const std::string& key, std::int64_t amount) override {
    return store_->add(prefix_ + key, amount);
  }
  void erase(const std::string& key) override { store_->erase(prefix_ + key); }

 private:
  const std::string prefix_;
  const std::shared_ptr<Rendezvous> store_;
};

/// The store named by `url`: "file:///dir" (created if missing) or "tcp://host:port", which is
/// contacted with `token` until the deadline. Error(kInvalidConfig) for any other form.
std::shared_ptr<Rendezvous> open_rendezvous(const std::string& url,
                                            const std::string& token,
                                            Deadline deadline);

}  // namespace satrap::net
