#pragma once

#include <cstddef>
#include <span>

#include "satrap/core/float_type.h"
#include "src/ps/divided_keys.h"
#include "src/ps/shard_wire.h"

namespace satrap::ps {

/// Completes the answer to a pull of a rank that keeps copies, once all workers have written their
/// parts: puts the RowAnswers before the weights, and moves the weights of the rows that are sent
/// together, which stand at the begin of each worker's part of each table as if all rows were sent.
/// Returns the size of the answer.
std::size_t pack_answer(const ShardLayout& layout,
                        const DividedKeys& keys,
                        std::span<const RowAnswer> answers,  // [num_keys]
                        FloatType encoding,
                        std::span<std::byte> reply);

/// The answers in a reply: [num_keys] out. Throws Error(kInvalidData) for one that is none.
void unpack_answers(std::span<const std::byte> packed, std::span<RowAnswer> answers);

}  // namespace satrap::ps
