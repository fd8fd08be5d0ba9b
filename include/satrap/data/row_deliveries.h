#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "satrap/data/bad_rows.h"
#include "satrap/data/batch_source.h"
#include "satrap/data/data_file.h"
#include "satrap/data/row_block.h"
#include "satrap/data/row_block_source.h"
#include "satrap/data/schema.h"
#include "satrap/data/topic_position.h"

namespace satrap::data {

class Dataset;

/// A message of a process that reads rows to the one that trains on them: the next rows of a pass,
/// and facts about the files.
struct RowDelivery {
  RowBlock rows;                   // may be empty
  BadRows bad;                     // of the same lines
  std::int64_t end_row = 0;        // as RowBlockSource::end_row after these rows
  ReadStats stats;                 // bytes, epoch_rows, lag, time_ms, of the process that reads
  std::vector<FileNote> files;     // what has become known of files since the last delivery
  std::vector<TopicPiece> pieces;  // of a topic: what the rows up to end_row came from
  bool is_end = false;             // no rows: the end of the pass

  void clear();
};

/// The deliveries of one pass, in the order of rows. Used by one thread, except for close().
class RowDeliveries {
 public:
  virtual ~RowDeliveries() = default;

  /// Replaces `delivery`; blocks until there is one. False after close() or a stop; after the one
  /// that is_end nothing may be asked for. Throws as RowBlockSource::next.
  virtual bool next(RowDelivery& delivery) = 0;

  /// As RowBlockSource::close. Thread-safe.
  virtual void close() = 0;
};

/// Opens the deliveries of a pass over the training data.
using OpenDeliveries =
    std::function<std::unique_ptr<RowDeliveries>(const Dataset& data, const RowPass& pass)>;

/// Reads the rows here, for another process, whose configuration names the files one by one. Limits
/// of bad rows do not apply. Throws as open_batches does.
std::unique_ptr<RowDeliveries> open_deliveries(const Dataset& data, const RowPass& pass);

/// Appends the bytes of a delivery, in this machine's byte order.
void append(const RowDelivery& delivery, std::vector<std::byte>& bytes);

/// Replaces `delivery` by the one in `bytes`. Throws Error(kCorrupt) if they are truncated, too
/// long or of other columns than the schema's; no bytes do other harm.
void read(std::span<const std::byte> bytes, const Schema& schema, RowDelivery& delivery);

}  // namespace satrap::data
