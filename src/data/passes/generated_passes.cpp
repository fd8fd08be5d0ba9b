#include "src/data/passes/generated_passes.h"

#include <algorithm>
#include <utility>

#include "satrap/core/error.h"
#include "src/data/generate/generated_rows.h"

namespace satrap::data {

GeneratedPasses::GeneratedPasses(const Dataset& data, Rows rows)
    : RolePasses(data, std::move(rows)),
      generator_(data.generator()),
      offset_(this->rows().role == Role::kTrain ? 0 : data.config().synthetic.rows),
      num_rows_(this->rows().role == Role::kTrain ? data.config().synthetic.rows
                                                  : data.config().synthetic.eval_rows) {}

std::int64_t GeneratedPasses::num_rows() const {
  return rows().max_rows > 0 ? std::min(rows().max_rows, num_rows_) : num_rows_;
}

std::string GeneratedPasses::no_rows_message() const {
  return concat("data.synthetic: no rows for the ", role_name(), " data");
}

std::unique_ptr<RowBlockSource> GeneratedPasses::open_limited(const Schema& /*schema*/,
                                                              const RowPass& pass) const {
  return std::make_unique<GeneratedRows>(generator_, offset_, num_rows_, pass);
}

}  // namespace satrap::data
