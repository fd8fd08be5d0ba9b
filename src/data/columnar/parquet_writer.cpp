#include "satrap/data/parquet_writer.h"

#include <exception>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <system_error>

#include "satrap/core/error.h"
#include "satrap/core/text.h"
#include "src/data/columnar/parquet.h"

namespace satrap::data {
namespace {

class LibraryWriter : public ParquetWriter {
 public:
  explicit LibraryWriter(const std::string& path)
      : path_(path), unfinished_(path + ".part"), library_(parquet_library()) {
    translate([&] { output_ = library_.create(unfinished_); });
  }

  ~LibraryWriter() override {
    output_.reset();
    std::error_code unknown;  // it has its name, or was never made
    std::filesystem::remove(unfinished_, unknown);
  }

  void begin(ArrowArrayStream& stream) override {
    translate([&] { output_->begin(stream); });
  }

  bool write_batch() override {
    bool was_there = false;
    translate([&] { was_there = output_->write_batch(); });
    return was_there;
  }

  std::int64_t finish() override {
    std::int64_t num_rows = 0;
    translate([&] {
      num_rows = output_->finish();
      std::filesystem::rename(unfinished_, path_);
    });
    return num_rows;
  }

 private:
  template <class Write>
  void translate(const Write& write) const {
    try {
      write();
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::invalid_argument& error) {
      throw Error(ErrorCode::kInvalidData, printable(error.what()));
    } catch (const std::exception& error) {
      throw Error(ErrorCode::kIo, concat("'", path_, "' cannot be written: ", error.what()));
    }
  }

  const std::string path_, unfinished_;
  const ParquetLibrary& library_;
  std::unique_ptr<ParquetOutput> output_;
};

}  // namespace

std::unique_ptr<ParquetWriter> write_parquet(const std::string& path) {
  return std::make_unique<LibraryWriter>(path);
}

}  // namespace satrap::data
