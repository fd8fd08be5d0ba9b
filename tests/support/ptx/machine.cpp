#include "tests/support/ptx/machine.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <sstream>

#include "tests/support/ptx/evaluate.h"
#include "tests/support/ptx/memory.h"
#include "tests/support/ptx/warp.h"
#include "tests/support/simt/executor.h"

namespace ptx {
namespace {

constexpr std::size_t kBlocksAtATime = 3;
constexpr std::uint64_t kMostInstructionsInARow = 24;
constexpr std::byte kFreshShared{0xFF};
constexpr std::uint64_t kFreshRegister = 0xDEADBEEFDEADBEEF;

class Machine {
 public:
  Machine(const Kernel& kernel,
          std::span<const Range> shared_arrays,
          unsigned grid_size,
          unsigned block_size,
          const Arguments& arguments,
          std::uint64_t seed)
      : kernel_(kernel),
        shared_arrays_(shared_arrays),
        grid_size_(grid_size),
        block_size_(block_size),
        arguments_(arguments),
        in_lock_step_(seed == 0),
        generator_(seed) {
    executed_.by_instruction.resize(kernel.code.size());
    for (const std::vector<std::byte>& argument : arguments) {
      constexpr std::size_t kUnit = 16;  // the strictest alignment; and a gap behind each
      parameter_ranges_.push_back({parameters_.size(), argument.size()});
      parameters_.insert(parameters_.end(), argument.begin(), argument.end());
      parameters_.resize((parameters_.size() / kUnit + 2) * kUnit);
    }
  }

  Executed run() {
    std::vector<unsigned> order(grid_size_);
    std::iota(order.begin(), order.end(), 0U);
    if (!in_lock_step_) std::shuffle(order.begin(), order.end(), generator_);
    std::vector<std::unique_ptr<Block>> live;
    auto next = order.begin();
    while (next != order.end() || !live.empty()) {
      while (live.size() < (in_lock_step_ ? 1 : kBlocksAtATime) && next != order.end()) {
        live.push_back(begin_block(*next++));
      }
      const std::size_t chosen = draw(live.size());
      advance(*live[chosen]);
      if (live[chosen]->num_alive == 0) {
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(chosen));
      }
    }
    executed_.launches = 1;
    if (in_lock_step_) executed_.sectors = global_.sectors();
    return executed_;
  }

 private:
  /// The lane that executes an instruction.
  struct At {
    At(Block& of_block, int of_warp, int of_lane)
        : block(of_block),
          warp(of_warp),
          lane(of_lane),
          state(block.warps[static_cast<std::size_t>(warp)].lanes[static_cast<std::size_t>(lane)]) {
    }
    Block& block;
    const int warp, lane;
    Lane& state;
  };

  const Line& line_of(const Instruction& i) const {
    return kernel_.lines[static_cast<std::size_t>(&i - kernel_.code.data())];
  }

  [[noreturn]] void fail(const At& at, const Instruction& i, const std::string& what) const {
    std::ostringstream text;
    text << "PTX of " << kernel_.name << ", block " << at.block.index << ", warp " << at.warp
         << ", lane " << at.lane << ", " << kernel_.file << ":" << line_of(i).number << " `"
         << line_of(i).text << "`: " << what;
    throw simt::Fault(text.str());
  }

  std::uint64_t draw(std::uint64_t bound) { return in_lock_step_ ? 0 : generator_() % bound; }

  std::unique_ptr<Block> begin_block(unsigned index) const {
    auto block = std::make_unique<Block>();
    block->index = index;
    block->warps.resize(block_size_ / kLanes);
    for (Warp& warp : block->warps) {
      for (Lane& lane : warp.lanes) {
        lane.registers.assign(static_cast<std::size_t>(kernel_.num_registers), kFreshRegister);
      }
    }
    const std::uint64_t shared_bytes = shared_arrays_.empty() ? 0 : shared_arrays_.back().end();
    block->shared.assign(shared_bytes, kFreshShared);
    block->num_alive = static_cast<int>(block_size_);
    return block;
  }

  void advance(Block& block) {
    std::size_t w = draw(block.warps.size());
    while (block.warps[w].num_alive == 0) w = (w + 1) % block.warps.size();
    if (in_lock_step_) {
      advance_in_lock_step(block, static_cast<int>(w));
    } else {
      advance_one_lane(block, static_cast<int>(w));
    }
  }

  void advance_one_lane(Block& block, int w) {
    const auto& lanes = block.warps[static_cast<std::size_t>(w)].lanes;
    const int first = static_cast<int>(draw(kLanes));
    for (int n = 0; n < kLanes; ++n) {
      const int lane = (first + n) % kLanes;
      if (!lanes[static_cast<std::size_t>(lane)].can_run()) continue;
      const At at{block, w, lane};
      for (std::uint64_t left = 1 + draw(kMostInstructionsInARow); left > 0 && step(at); --left) {
      }
      return;
    }
    fail_as_stuck(block, w);
  }

  void advance_in_lock_step(Block& block, int w) {
    auto& lanes = block.warps[static_cast<std::size_t>(w)].lanes;
    int first = std::numeric_limits<int>::max();
    for (const Lane& lane : lanes) {
      if (lane.can_run()) first = std::min(first, lane.pc);
    }
    if (first == std::numeric_limits<int>::max()) fail_as_stuck(block, w);
    ++executed_.warp_instructions;
    ++executed_.by_instruction[static_cast<std::size_t>(first)];
    std::uint32_t chosen = 0;
    for (std::uint32_t l = 0; l < kLanes; ++l) {
      if (lanes[l].can_run() && lanes[l].pc == first) chosen |= std::uint32_t{1} << l;
    }
    for (int l = 0; l < kLanes; ++l) {
      if ((chosen >> l & 1U) != 0) step({block, w, l});
    }
  }

  [[noreturn]] void fail_as_stuck(Block& block, int w) const {
    for (int l = 0; l < kLanes; ++l) {
      const At at{block, w, l};
      if (at.state.waits) {
        fail(at, kernel_.code[static_cast<std::size_t>(at.state.pc)], "waits for ever");
      }
    }
    throw simt::Fault(kernel_.name + ": no lane can go on");
  }

  std::uint64_t value_of(const At& at, const Operand& o) const {
    if (o.kind == Operand::Kind::kRegister) {
      return at.state.registers[static_cast<std::size_t>(o.index)] + o.value;
    }
    return base_of(at, o) + o.value;
  }

  std::uint64_t base_of(const At& at, const Operand& o) const {
    switch (o.kind) {
      case Operand::Kind::kParameter:
        return parameter_ranges_[static_cast<std::size_t>(o.index)].begin;
      case Operand::Kind::kThread:
        return static_cast<std::uint64_t>(at.warp * kLanes) + static_cast<std::uint64_t>(at.lane);
      case Operand::Kind::kBlock:
        return at.block.index;
      case Operand::Kind::kBlockSize:
        return block_size_;
      case Operand::Kind::kGridSize:
        return grid_size_;
      default:
        return 0;
    }
  }

  static void set(const At& at, const Operand& destination, std::uint64_t value) {
    at.state.registers[static_cast<std::size_t>(destination.index)] = value;
  }

  /// Executes one instruction of a lane. False if it waits now or has ended.
  bool step(const At& at) {
    Lane& lane = at.state;
    const Instruction& i = kernel_.code[static_cast<std::size_t>(lane.pc)];
    ++executed_.lane_instructions;
    if (i.guard >= 0 &&
        (lane.registers[static_cast<std::size_t>(i.guard)] != 0) == i.guard_is_negated) {
      ++lane.pc;
      return true;
    }
    if (is_collective(i.opcode)) return meet(at, i);
    switch (i.opcode) {
      case Opcode::kBra:
        lane.pc = i.target;
        return true;
      case Opcode::kRet:
        end(at);
        return false;
      case Opcode::kLd:
        load(at, i);
        break;
      case Opcode::kSt:
        store(at, i);
        break;
      default:
        compute(at, i);
    }
    ++lane.pc;
    return true;
  }

  void end(const At& at) const {
    Warp& warp = at.block.warps[static_cast<std::size_t>(at.warp)];
    at.state.has_ended = true;
    --warp.num_alive;
    --at.block.num_alive;
    for (int other = 0; other < kLanes; ++other) {
      const At waiting{at.block, at.warp, other};
      if (waiting.state.waits && (waiting.state.mask >> at.lane & 1U) != 0) {
        fail(waiting, kernel_.code[static_cast<std::size_t>(waiting.state.pc)],
             "waits for lane " + std::to_string(at.lane) + ", which has ended");
      }
    }
  }

  void compute(const At& at, const Instruction& i) const {
    std::array<std::uint64_t, 4> sources{};
    for (std::size_t s = 0; s < i.sources.size(); ++s) sources[s] = value_of(at, i.sources[s]);
    if (i.destinations.size() == 2) {  // mov {low, high}, wide
      const auto half = static_cast<std::uint64_t>(bytes_of(i.type)) * 4;
      set(at, i.destinations[0], sources[0] & ((std::uint64_t{1} << half) - 1));
      set(at, i.destinations[1], sources[0] >> half);
    } else if (i.opcode == Opcode::kMov && i.sources.size() == 2) {  // mov wide, {low, high}
      const auto half = static_cast<std::uint64_t>(bytes_of(i.type)) * 4;
      const std::uint64_t low = sources[0] & ((std::uint64_t{1} << half) - 1);
      set(at, i.destinations[0], truncate(low | sources[1] << half, i.type));
    } else {
      set(at, i.destinations[0], evaluate(i, {sources.data(), i.sources.size()}));
    }
  }

  /// The host's address of what ld or st accesses; checks that it may.
  std::byte* access(const At& at, const Instruction& i, std::size_t num_values) {
    const auto bytes = static_cast<std::uint64_t>(bytes_of(i.type)) * num_values;
    const std::uint64_t address = value_of(at, i.sources[0]);
    if (address % bytes != 0) fail(at, i, "misaligned address");
    if (i.space == Space::kParameter) {
      if (!lies_in_any(parameter_ranges_, address, bytes)) fail(at, i, "outside of the parameters");
      return parameters_.data() + address;
    }
    const bool writes = i.opcode == Opcode::kSt;
    const int line = line_of(i).number;
    const auto warps = static_cast<std::uint32_t>(at.block.warps.size());
    const auto warp = static_cast<std::uint32_t>(at.warp);
    if (i.space == Space::kShared) {
      if (!lies_in_any(shared_arrays_, address, bytes)) {
        fail(at, i, "outside of every shared array");
      }
      const std::string race = at.block.shared_accesses.note(address, bytes, writes, warp, line);
      if (!race.empty()) fail(at, i, race);
      return at.block.shared.data() + address;
    }
    const std::string wrong =
        global_.check(address, bytes, writes, at.block.index * warps + warp, line);
    if (!wrong.empty()) fail(at, i, wrong);
    return std::bit_cast<std::byte*>(address);
  }

  /// `ranges` are in the order of their addresses.
  static bool lies_in_any(std::span<const Range> ranges,
                          std::uint64_t address,
                          std::uint64_t bytes) {
    const auto after = std::ranges::upper_bound(ranges, address, {}, &Range::begin);
    if (after == ranges.begin()) return false;
    return lies_within(address, bytes, after[-1].begin, after[-1].size);
  }

  void load(const At& at, const Instruction& i) {
    const std::byte* from = access(at, i, i.destinations.size());
    const auto bytes = static_cast<std::size_t>(bytes_of(i.type));
    for (const Operand& destination : i.destinations) {
      std::uint64_t value = 0;
      std::memcpy(&value, from, bytes);
      set(at, destination, truncate(value, i.type));
      from += bytes;
    }
  }

  void store(const At& at, const Instruction& i) {
    std::byte* to = access(at, i, i.sources.size() - 1);
    const auto bytes = static_cast<std::size_t>(bytes_of(i.type));
    for (std::size_t s = 1; s < i.sources.size(); ++s) {
      const std::uint64_t value = value_of(at, i.sources[s]);
      std::memcpy(to, &value, bytes);
      to += bytes;
    }
  }

  /// A lane arrives at a collective; the last one of its mask completes it for all.
  bool meet(const At& at, const Instruction& i) {
    Lane& lane = at.state;
    lane.mask = static_cast<std::uint32_t>(value_of(at, i.sources.back()));
    if ((lane.mask >> at.lane & 1U) == 0) fail(at, i, "the mask leaves out its caller");
    lane.waits = true;
    const auto& lanes = at.block.warps[static_cast<std::size_t>(at.warp)].lanes;
    for (std::size_t other = 0; other < kLanes; ++other) {
      if ((lane.mask >> other & 1U) == 0) continue;
      const Lane& state = lanes[other];
      const auto fail_because_of = [&](const char* before, const char* after) {
        fail(at, i, before + ("lane " + std::to_string(other)) + after);
      };
      if (state.has_ended) fail_because_of("waits for ", ", which has ended");
      if (!state.waits) return false;
      if (state.mask != lane.mask) fail_because_of("", " waits with another mask");
      if (state.pc != lane.pc) fail_because_of("", " waits at another instruction");
    }
    complete(at, i, lane.mask);
    return false;
  }

  void complete(const At& at, const Instruction& i, std::uint32_t mask) const {
    std::array<Contribution, kLanes> given{};
    for (int l = 0; l < kLanes; ++l) {
      if ((mask >> l & 1U) == 0 || i.opcode == Opcode::kBarWarp) continue;
      const At lane{at.block, at.warp, l};
      Contribution& mine = given[static_cast<std::size_t>(l)];
      mine.value = value_of(lane, i.sources[0]);
      if (i.opcode != Opcode::kShfl) continue;
      mine.source = static_cast<std::uint32_t>(value_of(lane, i.sources[1]));
      mine.clamp = static_cast<std::uint32_t>(value_of(lane, i.sources[2]));
    }
    for (int l = 0; l < kLanes; ++l) {
      if ((mask >> l & 1U) == 0) continue;
      const At lane{at.block, at.warp, l};
      const Exchanged result = exchange(i, given, mask, l);
      if (result.source_lane >= 0 && (mask >> result.source_lane & 1U) == 0) {
        fail(lane, i,
             "reads lane " + std::to_string(result.source_lane) + ", which its mask leaves out");
      }
      if (!i.destinations.empty()) set(lane, i.destinations[0], result.value);
      if (i.destinations.size() == 2) set(lane, i.destinations[1], result.predicate ? 1 : 0);
      lane.state.waits = false;
      ++lane.state.pc;
    }
  }

  const Kernel& kernel_;
  const std::span<const Range> shared_arrays_;
  const unsigned grid_size_, block_size_;
  const Arguments& arguments_;
  std::vector<std::byte> parameters_;
  std::vector<Range> parameter_ranges_;  // in parameters_
  const bool in_lock_step_;
  std::mt19937_64 generator_;
  GlobalMemory global_;
  Executed executed_;
};

}  // namespace

Executed run(const Kernel& kernel,
             std::span<const Range> shared_arrays,
             unsigned grid_size,
             unsigned block_size,
             const Arguments& arguments,
             std::uint64_t seed) {
  const auto fail = [&](const std::string& what) { throw simt::Fault(kernel.name + ": " + what); };
  if (grid_size == 0 || block_size == 0 || block_size % kLanes != 0 || block_size > 1024) {
    fail("a grid of " + std::to_string(grid_size) + " blocks of " + std::to_string(block_size) +
         " threads");
  }
  if (arguments.size() != kernel.parameter_bytes.size()) fail("wrong number of parameters");
  for (std::size_t p = 0; p < arguments.size(); ++p) {
    if (arguments[p].size() != static_cast<std::size_t>(kernel.parameter_bytes[p])) {
      fail("parameter " + std::to_string(p) + " has " + std::to_string(arguments[p].size()) +
           " bytes, and the PTX says " + std::to_string(kernel.parameter_bytes[p]));
    }
  }
  return Machine(kernel, shared_arrays, grid_size, block_size, arguments, seed).run();
}

}  // namespace ptx
