#include "src/data/message_taker.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>

#include "satrap/core/error.h"
#include "src/data/column_map.h"
#include "src/data/column_messages.h"
#include "src/data/foreign_text.h"
#include "src/data/line_cutter.h"

namespace satrap::data {
namespace {

/// Messages of one or several lines of text.
class LineMessages : public MessageTaker {
 public:
  /// Whose columns the schema names (validate), so that no line is needed to find them. Null: the
  /// format has none.
  LineMessages(std::shared_ptr<const ColumnMap> layout, bool begins)
      : layout_(std::move(layout)), is_first_(begins) {}

  void take(const KafkaMessage& message,
            const std::string& partition,
            std::int64_t& to_skip,
            TextBlock& block) override {
    std::string_view text(message.value, static_cast<std::size_t>(message.size));
    if (is_first_) require_columns(text, message, partition);
    is_first_ = false;
    if (block.layout != layout_) block.layout = layout_;
    const std::int64_t num_skipped = skip_lines_of(text, to_skip);
    if (num_skipped > 0 && text.empty()) return;
    const auto size = std::ssize(text);
    const std::int64_t needed = block.end + size + 1;
    if (needed > block.capacity) block.reserve(std::max(needed, 2 * block.capacity), block.end);
    block.messages.push_back(
        {.first_line = block.num_lines - num_skipped, .offset = message.offset});
    char* const copied = block.buffer.get() + block.end;
    std::memcpy(copied, text.data(), text.size());
    block.end += size;
    block.num_lines += count_newlines(copied, copied + size);
    if (!text.ends_with('\n')) {
      block.buffer[static_cast<std::size_t>(block.end++)] = '\n';
      ++block.num_lines;
    }
  }

 private:
  void require_columns(std::string_view text,
                       const KafkaMessage& message,
                       const std::string& partition) const {
    if (!layout_) return;
    const std::string foreign =
        foreign_text(text.substr(0, text.find('\n')), /*is_header=*/false, /*is_file=*/false);
    if (foreign.empty()) return;
    throw Error(ErrorCode::kInvalidData,
                concat(partition, ", offset ", message.offset, ": ", foreign));
  }

  /// Removes lines from the beginning of a message that had been read before; returns how many.
  static std::int64_t skip_lines_of(std::string_view& text, std::int64_t& to_skip) {
    std::int64_t skipped = 0;
    for (bool has_line = true; to_skip > 0 && has_line; --to_skip, ++skipped) {
      const std::size_t end = text.find('\n');
      text.remove_prefix(std::min(end, text.size() - 1) + 1);
      has_line = !text.empty();
    }
    return skipped;
  }

  const std::shared_ptr<const ColumnMap> layout_;
  bool is_first_;
};

}  // namespace

std::unique_ptr<MessageTaker> make_message_taker(FileFormat format,
                                                 const Schema& schema,
                                                 const std::string& name,
                                                 bool begins) {
  if (is_columnar(format)) return std::make_unique<ColumnMessages>(schema, name);
  return std::make_unique<LineMessages>(format == FileFormat::kDelimited
                                            ? std::make_shared<const ColumnMap>(schema, "", name)
                                            : nullptr,
                                        begins);
}

}  // namespace satrap::data
