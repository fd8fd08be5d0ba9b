#include "tests/support/simt/executor.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/support/simt/block.h"
#include "tests/support/simt/schedule.h"

namespace simt {
namespace {

Interpreter current_interpreter;  // of all launches of the program

}  // namespace

void set_interpreter(Interpreter interpreter) { current_interpreter = std::move(interpreter); }
const Interpreter& interpreter() { return current_interpreter; }

void set_seed(std::uint64_t seed) { schedule.set(seed); }

void launch(const Launch& launch, const std::function<void()>& kernel) {
  const unsigned lanes = launch.block.count();
  if (launch.grid.count() == 0 || lanes == 0 || lanes > 1024) {
    throw Fault(launch.name + ": a grid of " + std::to_string(launch.grid.count()) + " blocks of " +
                std::to_string(lanes) + " threads");
  }
  std::vector<unsigned> order(launch.grid.count());
  for (unsigned i = 0; i < order.size(); ++i) order[i] = i;
  if (schedule.shuffled) std::shuffle(order.begin(), order.end(), schedule.generator);
  Block block(launch, kernel);
  struct Restore {
    Block* before = Block::current;
    ~Restore() { Block::current = before; }
  } restore;
  Block::current = &block;
  for (const unsigned i : order) {
    const Dim3 g = launch.grid;
    block.run(Dim3(i % g.x, i / g.x % g.y, i / (g.x * g.y)));
  }
}

std::uint64_t num_switches() { return schedule.num_switches; }

std::uint64_t draw_stream(std::uint64_t bound) { return schedule.draw(bound); }

const Place& place() { return Block::current->lane().place; }

std::span<const std::uint64_t, kWarpSize> exchange(Collective kind,
                                                   std::uint32_t mask,
                                                   std::uint64_t value,
                                                   std::source_location where) {
  return Block::current->exchange(kind, mask, value, where);
}

int barrier(bool predicate, std::source_location where) {
  return Block::current->barrier(predicate, where);
}

void preempt() { Block::current->preempt(); }

std::byte* dynamic_shared() { return Block::current->dynamic_shared(); }

void fail(const char* what, std::source_location where) {
  Block::current->note(what, where);
  Block::current->stop();
}

}  // namespace simt
