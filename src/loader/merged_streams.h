#pragma once

#include <cstdint>

#include "src/loader/loader_streams.h"

namespace satrap::loader {

/// The deliveries of a pass over files, taken from the streams of all loaders turn by turn.
class MergedStreams : public data::RowDeliveries {
 public:
  /// `side` outlives it.
  MergedStreams(RankSide& side, PassRequest request);

  bool next(data::RowDelivery& delivery) override;
  void close() override { streams_.close(); }

 private:
  PassRequest request_of(std::int64_t number, std::int64_t count) const;
  void take(data::RowDelivery& delivery);

  const PassRequest request_;
  const data::Schema schema_;
  const std::int64_t rows_per_turn_;
  std::int64_t next_row_;                  // of the pass: all before it have been delivered
  const ReceivedStream* asked_ = nullptr;  // by take()
  LoaderStreams streams_;
};

}  // namespace satrap::loader
