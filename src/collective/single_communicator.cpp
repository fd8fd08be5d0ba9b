#include <algorithm>

#include "satrap/collective/communicator.h"
#include "satrap/core/error.h"

namespace satrap::collective {
namespace {

class SingleCommunicator final : public Communicator {
 public:
  std::int64_t rank() const override { return 0; }
  std::int64_t size() const override { return 1; }
  void all_reduce_sum(std::span<float>, net::Deadline) override {}
  void all_reduce_sum(std::span<double>, net::Deadline) override {}
  std::unique_ptr<Reduction> begin_all_reduce_sum(std::span<float>) override {
    return std::make_unique<Nothing>();
  }
  void broadcast(std::span<std::byte>, std::int64_t root, net::Deadline) override {
    SATRAP_CHECK(root == 0, "broadcast from rank ", root, " of 1");
  }
  void all_to_all(std::span<const std::span<const std::byte>> to,
                  std::span<const std::span<std::byte>> from,
                  net::Deadline) override {
    SATRAP_CHECK(to.size() == 1 && from.size() == 1 && to[0].size() == from[0].size(),
                 "all_to_all of one rank with parts of another number or size");
    std::ranges::copy(to[0], from[0].begin());
  }
  void barrier(net::Deadline) override {}
  void close() override {}

 private:
  struct Nothing final : Reduction {
    void add(net::Deadline) override {}
    void finish(net::Deadline) override {}
  };
};

}  // namespace

std::unique_ptr<Communicator> make_single_communicator() {
  return std::make_unique<SingleCommunicator>();
}

}  // namespace satrap::collective
