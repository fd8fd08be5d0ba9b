#include "src/data/arrow/arrow_file.h"

#include <algorithm>
#include <exception>
#include <span>
#include <utility>

#include <arrow/buffer.h>
#include <arrow/result.h>
#include <arrow/status.h>

namespace satrap::data {
namespace {

class ArrowInput : public arrow::io::RandomAccessFile {
 public:
  explicit ArrowInput(std::shared_ptr<const RandomFile> file) : file_(std::move(file)) {}

  arrow::Result<int64_t> GetSize() override { return file_->size(); }
  arrow::Result<int64_t> Tell() const override { return position_; }
  bool closed() const override { return closed_; }

  arrow::Status Seek(int64_t position) override {
    position_ = position;
    return arrow::Status::OK();
  }

  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }

  arrow::Result<int64_t> ReadAt(int64_t position, int64_t nbytes, void* out) override {
    const int64_t n = bytes_there(position, nbytes);
    try {
      file_->read(position, {static_cast<char*>(out), static_cast<std::size_t>(n)});
    } catch (const std::exception& error) {
      return arrow::Status::IOError(error.what());
    }
    return n;
  }

  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(int64_t position, int64_t nbytes) override {
    ARROW_ASSIGN_OR_RAISE(std::unique_ptr<arrow::ResizableBuffer> buffer,
                          arrow::AllocateResizableBuffer(bytes_there(position, nbytes)));
    ARROW_ASSIGN_OR_RAISE(const int64_t n, ReadAt(position, nbytes, buffer->mutable_data()));
    ARROW_RETURN_NOT_OK(buffer->Resize(n));
    return std::shared_ptr<arrow::Buffer>(std::move(buffer));
  }

  arrow::Result<int64_t> Read(int64_t nbytes, void* out) override {
    ARROW_ASSIGN_OR_RAISE(const int64_t n, ReadAt(position_, nbytes, out));
    position_ += n;
    return n;
  }

  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t nbytes) override {
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::Buffer> buffer, ReadAt(position_, nbytes));
    position_ += buffer->size();
    return buffer;
  }

 private:
  /// How many of `nbytes`, which a damaged description may have made up, the file has.
  int64_t bytes_there(int64_t position, int64_t nbytes) const {
    return std::max<int64_t>(0, std::min(file_->size() - position, nbytes));
  }

  const std::shared_ptr<const RandomFile> file_;
  int64_t position_ = 0;
  bool closed_ = false;
};

}  // namespace

std::shared_ptr<arrow::io::RandomAccessFile> arrow_file(std::shared_ptr<const RandomFile> file) {
  return std::make_shared<ArrowInput>(std::move(file));
}

}  // namespace satrap::data
