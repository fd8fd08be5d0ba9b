#pragma once

#include <cstdint>
#include <span>

#include "tests/support/ptx/instruction.h"

namespace ptx {

/// Registers hold 64 bits. A value of a narrower type lies in the low bits; bits above it are 0, or
/// copies of the sign for a signed type. A predicate is 0 or 1. A computed NaN is 0x7FFFFFFF, as on
/// NVIDIA's devices.
std::uint64_t truncate(std::uint64_t value, Type type);

/// Whether the interpreter defines this form: the opcode with these types and modifiers.
bool is_defined(const Instruction& instruction);

/// Whether the instruction has as many destinations and sources as its form demands.
bool has_its_operands(const Instruction& instruction);

/// The result of an instruction that only computes: neither memory, nor control, nor other lanes.
/// `sources` are the values of its source operands. Integer division by zero gives all ones, as the
/// manual leaves it open.
std::uint64_t evaluate(const Instruction& instruction, std::span<const std::uint64_t> sources);

/// Whether the instruction is one of bar.warp.sync, shfl.sync, vote.sync and redux.sync, which the
/// lanes of a mask execute together.
bool is_collective(Opcode opcode);

}  // namespace ptx
