#include "satrap/pipeline/row_reader.h"

namespace satrap::pipeline {

RowReader::RowReader(embedding::RowAccess& access)
    : access_(access.reader()),
      planner_(access_.layout(), access_.pool()),
      rows_(access_.make_rows()) {}

void RowReader::look_up(const data::Batch& batch, PooledBatch& inputs) {
  inputs.begin(batch, access_.layout());
  rows_->read(planner_, batch);
  rows_->pool(batch, inputs.pooled(), inputs.mask());
}

}  // namespace satrap::pipeline
