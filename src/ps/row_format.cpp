#include "satrap/ps/row_format.h"

#include <cstring>

namespace satrap::ps {

void RowFormat::read_weights(const std::byte* row, float* out) const {
  with_weight_type(weights, [&]<class Weight>(std::type_identity<Weight>) {
    const auto* from = reinterpret_cast<const Weight*>(row + sizeof(RowHeader));
    for (std::int64_t d = 0; d < dim; ++d) out[d] = to_float(from[d]);
  });
}

void RowFormat::write_weights(const float* values,
                              std::uint64_t rounding_seed,
                              RowPointer row) const {
  std::byte* const to = row + sizeof(RowHeader);
  with_weight_type(weights, [&]<class Weight>(std::type_identity<Weight>) {
    if constexpr (std::is_same_v<Weight, float>) {
      std::memcpy(to, values, static_cast<std::size_t>(weight_bytes()));
    } else {
      const RandomStream random{hash64(rounding_seed, mixed_id_of(header_of(row).key))};
      auto* const out = reinterpret_cast<Weight*>(to);
      for (std::int64_t d = 0; d < dim; ++d) {  // a draw has the bits for two weights
        const std::uint64_t draw = random.bits(static_cast<std::uint64_t>(d) / 2);
        const auto bits = static_cast<std::uint32_t>(d % 2 == 0 ? draw : draw >> 32);
        round_stochastically(values[d], bits, out[d]);
      }
    }
  });
}

void RowFormat::write_nearest(const float* values, RowPointer row) const {
  with_weight_type(weights, [&]<class Weight>(std::type_identity<Weight>) {
    auto* const out = reinterpret_cast<Weight*>(row + sizeof(RowHeader));
    for (std::int64_t d = 0; d < dim; ++d) round_to_nearest(values[d], out[d]);
  });
}

}  // namespace satrap::ps
