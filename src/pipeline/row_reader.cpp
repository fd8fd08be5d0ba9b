#include "satrap/pipeline/row_reader.h"

namespace satrap::pipeline {

RowReader::RowReader(embedding::RowAccess& access)
    : access_(access), planner_(access.layout(), access.pool()), rows_(access.make_rows()) {}

void RowReader::look_up(const data::Batch& batch,
                        std::vector<float>& pooled,
                        std::vector<float>& mask) {
  const auto rows = static_cast<std::size_t>(batch.num_examples);
  pooled.resize(rows * static_cast<std::size_t>(access_.layout().output_width));
  mask.resize(rows * static_cast<std::size_t>(access_.layout().mask_width));
  rows_->read(planner_, batch);
  rows_->pool(batch, pooled, mask);
}

}  // namespace satrap::pipeline
