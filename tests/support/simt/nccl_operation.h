#pragma once

#include <map>
#include <memory>
#include <vector>

#include "tests/support/simt/nccl_communicator.h"

namespace simt {

/// The calls of a group, as work of a stream.
class Communicator::Operation {
 public:
  Operation(std::shared_ptr<Communicator> communicator,
            std::uint64_t number,
            std::vector<Call> calls);
  /// Work may be dropped: after a Fault.
  ~Operation();
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  std::string name() const;
  std::vector<Bytes> reads() const, writes() const;
  Progress poll();  // throws Fault

 private:
  struct Part {
    Call call;
    std::uint64_t collective = 0;     // its number
    std::vector<std::byte> own{};     // what was there when it began
    std::map<int, Message> others{};  // by rank: what has arrived
    bool is_done = false;
  };

  bool is_delayed();
  void begin();
  bool collect();
  bool collect_collective(Part& part);
  bool collect_send(const Part& part);
  bool collect_receive(Part& part);
  void check_part(const Part& part, int rank, const Message& theirs) const;
  void write();
  void write(const Part& part) const;
  void poison() const;

  const std::shared_ptr<Communicator> communicator_;
  const std::uint64_t number_;
  std::vector<Part> parts_;
  std::uint64_t delay_before_, delay_after_;
  bool has_begun_ = false, has_ended_ = false;
};

}  // namespace simt
