#pragma once

#include <cstddef>
#include <cstdint>

#include "satrap/core/float_type.h"
#include "satrap/core/hash.h"
#include "satrap/core/ids.h"
#include "satrap/kernels/row_optimizer.h"

namespace satrap {

/// The start of a row, which identifies it wherever it is.
struct RowHeader {
  Key key;
  std::uint32_t last_step;  // step of the last update; 0: still as initialised
  std::uint32_t count;      // number of updates (saturating)
};
static_assert(sizeof(RowHeader) == 16);
inline constexpr std::int64_t kMaxStep = 0xFFFFFFFF;  // largest value of last_step
inline constexpr std::uint32_t kMaxCount = 0x7FFFFFFF;

constexpr void note_update(RowHeader& header, std::uint32_t step) {
  header.last_step = step;
  header.count += header.count != kMaxCount ? 1U : 0U;
}

/// The layout of a row, the same in tables, caches, files and messages: RowHeader, weights, the
/// optimizer's state in fp32, each a multiple of 16 bytes. Weights, and each array of the state
/// that has a number per weight, are padded with zeros up to a multiple of 4, so that whole vectors
/// can be loaded; updates leave zeros in the padding.
///
/// In a device's memory the header is last, so that weights begin at a sector of 32 bytes; only the
/// kernels that move rows between host and device, or update them, depend on this.
struct RowLayout {
  static constexpr std::int64_t kUnit = 16;
  static constexpr std::int64_t kWeightsOffset = sizeof(RowHeader);

  std::int64_t dim = 0;            // weights without padding
  std::int64_t padded_dim = 0;     // dim up to a multiple of 4
  std::int64_t state_offset = 0;   // bytes from the start of the row
  std::int64_t state_floats = 0;   // [n], or [m][v] and [z][n] of padded_dim each, or 1
  std::int64_t row_bytes = 0;      // a multiple of kUnit
  std::int64_t device_stride = 0;  // bytes between rows in a device's memory: a multiple of 32
  FloatType weight_type = FloatType::kFp32;

  static RowLayout of(std::int64_t dim, FloatType weight_type, RowOptimizerType optimizer);

  /// Position of unit i of a row, of 16 bytes, in a device's memory.
  constexpr std::int64_t device_unit(std::int64_t i) const {
    return i == 0 ? row_bytes / kUnit - 1 : i - 1;
  }
  constexpr std::int64_t device_state_offset() const { return state_offset - kWeightsOffset; }
  constexpr std::int64_t device_header_offset() const { return row_bytes - kUnit; }

  /// Copies of a row from the host's layout to a device's, and back.
  void to_device(const std::byte* row, std::byte* device_row) const;    // [row_bytes] out
  void from_device(const std::byte* device_row, std::byte* row) const;  // [row_bytes] out

  /// The rest is for rows in the host's memory.
  float* state_of(std::byte* row) const { return reinterpret_cast<float*>(row + state_offset); }

  /// The weights as floats.
  void read_weights(const std::byte* row, float* out) const;  // [dim] out

  /// Stores weights; those of 16 bits are rounded stochastically, by random numbers of
  /// (rounding_seed, mixed id of the row).
  void write_weights(const float* values, std::uint64_t rounding_seed, std::byte* row) const;

  /// Stores the weights of a new row, rounded to nearest.
  void write_nearest(const float* values, std::byte* row) const;

  /// Calls update(weights, state), both float*, which may change them. `scratch` [dim] holds
  /// weights that are not stored as floats meanwhile.
  template <class Update>
  void change(std::byte* row, std::uint64_t rounding_seed, float* scratch, Update&& update) const {
    if (weight_type == FloatType::kFp32) {
      update(reinterpret_cast<float*>(row + kWeightsOffset), state_of(row));
      return;
    }
    read_weights(row, scratch);
    update(scratch, state_of(row));
    write_weights(scratch, rounding_seed, row);
  }

  /// A row without padding, weights filled up to whole floats: the rows of checkpoints of format 2,
  /// which the digest of a checkpoint also uses.
  std::int64_t packed_bytes() const;
  void pack(const std::byte* row, std::byte* packed) const;    // [packed_bytes()] out
  void unpack(const std::byte* packed, std::byte* row) const;  // [row_bytes] out

  template <class Copy>
  void for_each_part(Copy&& copy) const;
};

/// The random numbers of a row's rounding after an update, from table and step (rounding_seed) and
/// row.
constexpr RandomStream rounding_stream(std::uint64_t rounding_seed, Key key) {
  return {hash64(rounding_seed, mixed_id_of(key))};
}

}  // namespace satrap
