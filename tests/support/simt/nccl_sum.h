#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <nccl.h>

namespace simt {

/// Bytes of an element; 0 for what is no type.
std::size_t size_of(ncclDataType_t type);
std::string name_of(ncclDataType_t type);

/// The element-wise sum of arrays of `count` elements, one of each rank, as a ring computes it:
/// each rank's share of the elements starts with another rank, and every step rounds to the type.
/// `shift` rotates the shares.
std::vector<std::byte> ring_sum(std::span<const std::span<const std::byte>> parts,
                                std::size_t count,
                                ncclDataType_t type,
                                std::uint64_t shift);

}  // namespace simt
