#pragma once

#include <cstdint>
#include <memory>
#include <string>

struct ArrowArrayStream;  // of Arrow's C stream interface

namespace satrap::data {

/// Writes record batches that other programs hand over by Arrow's C stream interface to a file of
/// Parquet. Values are not copied by way of texts. In memory are a batch and a row group. One
/// thread at a time. All throw Error: kInvalidData says what is wrong with the rows, kIo with the
/// file.
class ParquetWriter {
 public:
  virtual ~ParquetWriter() = default;  // before finish(): removes what was written

  /// The next rows are those of the stream, which it takes over and releases. The first one decides
  /// names and types of the columns; those that follow must have the same.
  virtual void begin(ArrowArrayStream& stream) = 0;

  /// Writes the stream's next batch. False: there was none.
  virtual bool write_batch() = 0;

  /// Ends the file, which then appears under its name. Returns its rows; at least one.
  virtual std::int64_t finish() = 0;
};

/// Throws Error(kUnavailable), with the remedy, if this satrap was built without Arrow.
std::unique_ptr<ParquetWriter> write_parquet(const std::string& path);

}  // namespace satrap::data
