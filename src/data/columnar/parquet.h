#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "satrap/data/texts.h"
#include "src/data/files/random_file.h"

struct ArrowArrayStream;

namespace satrap::data {

/// The functions that satrap needs of Arrow's readers of Parquet and Arrow IPC, and of its writer
/// of Parquet. They are in a shared library of their own, which parquet_library() opens when it is
/// first needed, so that satrap runs without Arrow. The two sides share only this header and those
/// that it includes. What Arrow refuses is a std::exception with its message.

/// The values of one column in consecutive rows. A row of a list column has any number of elements,
/// a row of another column one. Reused without allocating once its vectors have grown.
struct ParquetValues {
  std::vector<std::int64_t> ends;      // of a list column: [rows] where each row's elements end
  std::vector<std::uint8_t> presence;  // [elements] 0: null; empty: none is

  // [elements] of the column's kind; 0 or "" for a null.
  std::vector<std::int64_t> integers;
  std::vector<float> floats;
  std::vector<double> doubles;
  Texts texts;
  std::vector<std::int32_t> codes;    // instead of texts: places in the dictionary
  const Texts* dictionary = nullptr;  // null: the texts are in `texts`; lives as long as the reader

  /// Keeps the dictionary, and the memory.
  void clear() {
    ends.clear();
    presence.clear();
    integers.clear();
    floats.clear();
    doubles.clear();
    texts.clear();
    codes.clear();
  }
};

/// Reads some columns of a row group from its first row to its last. One thread at a time.
class ParquetGroupReader {
 public:
  virtual ~ParquetGroupReader() = default;

  /// Replaces the values of each column by those of the next rows, of at least as many.
  virtual void read(std::int64_t num_rows, std::span<ParquetValues> columns) = 0;
  virtual void skip(std::int64_t num_rows) = 0;
};

/// The description of an open file. Thread-safe.
class ParquetFile {
 public:
  enum class Kind : std::uint8_t {
    kTruth,     // booleans, as the integers 0 and 1
    kInteger,   // of up to 64 bits
    kUnsigned,  // of 64 bits, as integers of the same bits
    kFloat,
    kDouble,
    kText,  // strings and other bytes
    kDays,  // since 1970-01-01, as integers; the next four are times
    kSeconds,
    kMilliseconds,
    kMicroseconds,
    kNanoseconds,
    kOther  // satrap does not read it
  };

  /// Whether values are dates or times.
  static bool is_of_time(Kind kind) { return kind >= Kind::kDays && kind <= Kind::kNanoseconds; }

  struct Column {
    std::string name;  // of a part of a struct: "user.age"
    std::string type;  // for people
    Kind kind = Kind::kOther;
    bool is_list = false;
    bool is_null = false;  // in every row, by its type
  };

  virtual ~ParquetFile() = default;
  virtual const std::vector<Column>& columns() const = 0;
  virtual const std::vector<std::int64_t>& rows_of_groups() const = 0;

  /// The least and the greatest value of a column in a row group, as two elements of its kind;
  /// nulls and nan are not counted. False: unknown, as in all formats but Parquet.
  virtual bool find_bounds(std::int64_t /*group*/,
                           std::size_t /*column*/,
                           ParquetValues& /*bounds*/) const {
    return false;
  }

  /// `columns`: places in columns(). The reader has about `max_bytes` of a file of Parquet in
  /// memory at most; of Arrow IPC it has the columns as a whole. The file must outlive the reader.
  virtual std::unique_ptr<ParquetGroupReader> read_group(std::int64_t group,
                                                         std::span<const std::size_t> columns,
                                                         std::int64_t max_bytes) const = 0;
};

/// A file that is written. Throws std::invalid_argument if rows cannot be written as they are, and
/// another std::exception if the file cannot.
class ParquetOutput {
 public:
  virtual ~ParquetOutput() = default;
  virtual void begin(ArrowArrayStream& stream) = 0;  // these as ParquetWriter
  virtual bool write_batch() = 0;
  virtual std::int64_t finish() = 0;
};

class ParquetLibrary {
 public:
  virtual ~ParquetLibrary() = default;
  virtual std::string describe() const = 0;  // "Arrow 26.0.1"
  virtual std::unique_ptr<ParquetFile> open(std::shared_ptr<const RandomFile> file) const = 0;
  /// A file of Arrow IPC, whose record batches take the place of row groups.
  virtual std::unique_ptr<ParquetFile> open_ipc(std::shared_ptr<const RandomFile> file) const = 0;
  /// The same of a stream of Arrow IPC, all of which is then in memory.
  virtual std::unique_ptr<ParquetFile> open_stream(
      std::shared_ptr<const RandomFile> file) const = 0;
  virtual std::unique_ptr<ParquetOutput> create(const std::string& path) const = 0;
};

/// Opens the library on the first call. Throws Error(kUnavailable) if it is not there.
const ParquetLibrary& parquet_library();

/// Opens a file of Parquet or of Arrow IPC, whichever it is, and names it in what it throws:
/// Error(kIo) if it cannot be read, Error(kInvalidData) if it is neither or an incomplete file,
/// Error(kUnavailable) if this satrap was built without the library. `is_cancelled`: as of
/// open_random_file.
std::unique_ptr<ParquetFile> open_parquet(const std::string& path,
                                          std::function<bool()> is_cancelled = {});

/// The same of a message of a topic, `bytes`, which may also be a stream of Arrow IPC.
std::unique_ptr<ParquetFile> open_message(std::shared_ptr<const RandomFile> bytes);

/// Calls read(), which reads from the open file `path`: what Arrow refuses becomes an
/// Error(kInvalidData) that names the file.
void translate_damage(const std::string& path, const std::function<void()>& read);

}  // namespace satrap::data
