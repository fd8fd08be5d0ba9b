#pragma once

#include <type_traits>
#include <vector>

#include "satrap/core/hash.h"
#include "satrap/table/row_init.h"
#include "satrap/table/table_spec.h"

namespace satrap::table {

/// The stored values of weights after the update of `step` (0: of a new row), by the definition:
/// rounded by random numbers of (seed, table's name, step, id); those of a new row to nearest.
inline std::vector<float> stored(const TableSpec& spec,
                                 std::uint64_t seed,
                                 Key key,
                                 std::int64_t step,
                                 std::vector<float> w) {
  const RandomStream random{hash64(hash64(RowInit::table_seed(seed, spec.name), 0x726F756E64ULL,
                                          static_cast<std::uint64_t>(step)),
                                   mixed_id_of(key))};
  with_float_type(spec.weights, [&]<class Weight>(std::type_identity<Weight>) {
    if constexpr (!std::is_same_v<Weight, float>) {
      for (std::size_t d = 0; d < w.size(); ++d) {
        const std::uint64_t draw = random.bits(d / 4) >> (d % 4 * 16) & 0xFFFF;
        Weight half;
        if (step == 0) {
          round_to_nearest(w[d], half);
        } else {
          round_stochastically(w[d], static_cast<std::uint32_t>(draw), half);
        }
        w[d] = to_float(half);
      }
    }
  });
  return w;
}

}  // namespace satrap::table
