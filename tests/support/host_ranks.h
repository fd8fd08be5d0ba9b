#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "satrap/collective/device_communicator.h"

namespace satrap::collective {

/// A DeviceCommunicator of devices whose memory is the host's, over a Communicator: every call is
/// done when it returns.
class HostRanks final : public DeviceCommunicator {
 public:
  HostRanks(std::unique_ptr<Communicator> group, const Options& options)
      : group_(std::move(group)), options_(options) {}

  std::int64_t rank() const override { return group_->rank(); }
  std::int64_t size() const override { return group_->size(); }

  void all_reduce_sum(float* values, std::int64_t count, backend::StreamRef) override {
    group_->all_reduce_sum(std::span(values, static_cast<std::size_t>(count)), deadline());
  }

  void all_to_all(const float* to,
                  std::span<const std::int64_t> to_counts,
                  float* from,
                  std::span<const std::int64_t> from_counts,
                  backend::StreamRef) override {
    std::vector<std::span<const std::byte>> to_parts;
    std::vector<std::span<std::byte>> from_parts;
    for (const std::int64_t count : to_counts) {
      to_parts.push_back(std::as_bytes(std::span(to, static_cast<std::size_t>(count))));
      to += count;
    }
    for (const std::int64_t count : from_counts) {
      from_parts.push_back(
          std::as_writable_bytes(std::span(from, static_cast<std::size_t>(count))));
      from += count;
    }
    group_->all_to_all(to_parts, from_parts, deadline());
  }

  void throw_if_failed() const override {}
  void close(std::exception_ptr) override { group_->close(); }

 private:
  net::Deadline deadline() const { return net::Deadline::after_ms(options_.timeout_ms); }

  const std::unique_ptr<Communicator> group_;
  const Options options_;
};

}  // namespace satrap::collective
