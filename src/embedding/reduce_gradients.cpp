#include "satrap/embedding/reduce_gradients.h"

#include <algorithm>

#include "satrap/core/error.h"
#include "satrap/kernels/pool.h"
#include "src/embedding/index.h"
#include "src/embedding/pool_rows.h"

namespace satrap::embedding {

void reduce_gradients(const BatchPlan& plan,
                      std::span<const std::int64_t> dims,
                      const float* grad_pooled,
                      std::span<float* const> gradients,
                      std::vector<float>& scratch,
                      ThreadPool& pool) {
  SATRAP_CHECK(gradients.size() == plan.keys.size(), "room for the gradients of ", gradients.size(),
               " rows for ", plan.num_unique(), " keys");
  const std::int64_t num_units = std::ssize(plan.update_units) - 1;
  const std::int64_t scratch_floats = 2 * (dims.empty() ? 0 : std::ranges::max(dims));
  scratch.resize(index(num_units * scratch_floats));
  const Occurrences occurrences = occurrences_of(plan, grad_pooled);
  pool.parallel_for(num_units, [&](std::int64_t unit) {
    float* const rows = scratch.data() + unit * scratch_floats;
    for (std::int64_t r = plan.update_units[index(unit)]; r < plan.update_units[index(unit + 1)];
         ++r) {
      const BatchPlan::Range& range = plan.ranges[index(r)];
      with_dim(dims[static_cast<std::size_t>(range.table)], [&](auto dim) {
        for (std::int64_t u = range.begin; u < range.end; ++u) {
          reduce_segment(occurrences, plan.segments[index(u)], plan.segments[index(u + 1)],
                         gradients[index(u)], rows, dim);
        }
      });
    }
  });
}

}  // namespace satrap::embedding
