#pragma once

#include <cstdint>
#include <filesystem>
#include <istream>
#include <map>
#include <string>
#include <vector>

#include "tests/support/ptx/instruction.h"

/// What a multiprocessor issues for a kernel: the instructions that ptxas makes of its PTX, for
/// sm_90, weighted by how often the interpreter has executed the lines of PTX they come from.
///
/// A block of SASS (no jump into it or out of it) is executed as often as its most frequent anchor:
/// an instruction that ptxas neither drops nor moves to another block, such as a load from global
/// memory, a shuffle or a branch. If a line's anchor has copies in several blocks, as in an
/// unrolled loop, they share its executions. Predicated instructions count even if no lane runs
/// them. Never executed, by assumption: collectives of a warp that has diverged before one that
/// names all lanes (BRA.DIV), and calls of subroutines, which are the roots and quotients of
/// numbers near the ends of the range and divisions of numbers from 2^32 on.
namespace ptx {

/// A kernel's disassembly, by blocks.
class Sass {
 public:
  /// Reads the functions of `nvdisasm -c -gp`, by canonical name, and adds them.
  static void read(std::istream& text, std::map<std::string, Sass>& kernels);

  /// The warp instructions issued, if the line of PTX with that number was executed by warps as
  /// often as `executions` says.
  double issued(const std::map<int, std::int64_t>& executions) const;

 private:
  struct Instruction {
    int line;  // of the PTX
    std::string opcode;
  };
  struct Block {
    std::vector<Instruction> instructions;
    bool is_cold = false;
  };
  static Sass parse(const std::vector<std::string>& lines);

  std::vector<Block> blocks_;
};

/// The disassembly of all .sass files of a folder; empty if there is none.
std::map<std::string, Sass> read_sass(const std::filesystem::path& folder);

}  // namespace ptx
