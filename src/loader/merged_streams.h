#pragma once

#include <cstdint>
#include <optional>

#include "satrap/data/topic_position.h"
#include "src/loader/loader_streams.h"

namespace satrap::loader {

/// The deliveries of a pass over files, or over a topic with an end, taken from the streams of all
/// loaders turn by turn. What rows of a topic came from is what the first stream says.
class MergedStreams : public data::RowDeliveries {
 public:
  /// `side` outlives it.
  MergedStreams(RankSide& side, PassRequest request);

  bool next(data::RowDelivery& delivery) override;
  void close() override { streams_.close(); }

 private:
  PassRequest request_of(std::int64_t number, std::int64_t count) const;
  void take(data::RowDelivery& delivery);
  void take_pieces(std::int64_t stream, data::RowDelivery& delivery);
  void pass_piece(const data::TopicPiece& piece);

  const PassRequest request_;
  const data::Schema schema_;
  const std::int64_t rows_per_turn_;
  std::int64_t next_row_;                     // of the pass: all before it have been delivered
  const ReceivedStream* asked_ = nullptr;     // by take()
  std::optional<data::TopicPosition> place_;  // of a topic: where streams are opened anew
  std::optional<data::TopicPiece> last_;      // which begins there
  LoaderStreams streams_;
};

}  // namespace satrap::loader
