#pragma once

#include <cstdint>

#include "satrap/backend/memory.h"
#include "satrap/backend/stream.h"
#include "satrap/core/float_matrix.h"
#include "satrap/dense/dense_network.h"
#include "src/dense/field_columns.h"
#include "src/dense/matrix.h"
#include "src/dense/steps_in_flight.h"

namespace satrap::dense {

/// The matrices of the batch that a network computes, where its device reads and writes them: in
/// the caller's memory if the device can use that, else in memory that is kept from batch to batch.
/// One thread; copies are queued in the order of `stream`, from a step's Staging.
class DeviceBatch {
 public:
  /// All outlive it.
  DeviceBatch(backend::Device& device,
              const backend::Stream& stream,
              const InputShape& shape,
              const FieldColumns& columns);

  ConstMatrix numeric(const ConstFloatMatrix& from, std::int64_t rows, Staging& staging);
  ConstMatrix labels(const ConstFloatMatrix& from, std::int64_t rows, Staging& staging);
  /// Without a place if `from` has none.
  ConstMatrix weights(const ConstFloatMatrix& from, std::int64_t rows, Staging& staging);
  /// Rows of the host's memory are widened on their way.
  ConstMatrix pooled(const ConstFloatMatrix& from, std::int64_t rows, Staging& staging);

  float* factors(std::int64_t rows, std::int64_t cols) { return room(factors_, rows, cols); }
  Matrix probabilities(std::int64_t rows) {
    return {room(probabilities_, rows, num_outputs_), rows, num_outputs_};
  }
  double* result() { return reinterpret_cast<double*>(room(result_, 1, 4)); }

  /// Where the network writes a gradient of pooled rows: in its place, or on the device before it
  /// is copied there.
  Matrix grad_pooled(const FloatMatrix& to, std::int64_t rows);
  /// Whether that is in its place.
  bool is_in_reach(const FloatMatrix& grad_pooled) const {
    return grad_pooled.place == backend::Place::kDevice ||
           (device_.is_host() && columns_.host_width() == columns_.device_width());
  }

 private:
  float* room(backend::Memory& memory, std::int64_t rows, std::int64_t cols);
  ConstMatrix numbers(const ConstFloatMatrix& from,
                      std::int64_t rows,
                      std::int64_t cols,
                      backend::Memory& memory,
                      Staging& staging,
                      const char* what);

  backend::Device& device_;
  const backend::Stream& stream_;
  const FieldColumns& columns_;
  const std::int64_t num_numeric_, num_labels_, num_outputs_;
  backend::Memory numeric_, pooled_, labels_, weights_, factors_, probabilities_, grad_pooled_,
      result_;
};

}  // namespace satrap::dense
