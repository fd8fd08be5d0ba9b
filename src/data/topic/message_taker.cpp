#include "src/data/topic/message_taker.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>

#include "satrap/core/error.h"
#include "src/data/files/foreign_text.h"
#include "src/data/text/column_map.h"
#include "src/data/text/line_cutter.h"
#include "src/data/text/quoted_lines.h"
#include "src/data/topic/column_messages.h"

namespace satrap::data {
namespace {

/// Messages of one or several lines of text.
class LineMessages : public MessageTaker {
 public:
  /// The schema names the columns of `layout` (validate), so that no line is needed to find them.
  /// Null: the format has none.
  LineMessages(std::shared_ptr<const ColumnMap> layout, const SchemaConfig& text, bool begins)
      : layout_(std::move(layout)), quotes_(text), is_first_(begins) {}

  void take(const KafkaMessage& message,
            const std::string& partition,
            std::int64_t& to_skip,
            TextBlock& block) override {
    const std::string_view text(message.value, static_cast<std::size_t>(message.size));
    if (is_first_) require_columns(text, message, partition);
    is_first_ = false;
    if (block.layout != layout_) block.layout = layout_;
    if (block.num_lines == 0) block.stand_in = 0;
    const std::int64_t needed = block.end + std::ssize(text) + 1;
    if (needed > block.capacity) block.reserve(std::max(needed, 2 * block.capacity), block.end);
    char* const copied = block.buffer.get() + block.end;
    std::memcpy(copied, text.data(), text.size());
    char* end = copied + text.size();
    if (!text.ends_with('\n')) *end++ = '\n';
    if (layout_) {
      quotes_.join(block.buffer.get() + block.begin, copied, end, /*is_all=*/true, block.stand_in);
    }
    std::int64_t num_skipped = 0;
    char* rest = copied;
    for (; to_skip > 0 && rest != end; --to_skip, ++num_skipped) {
      rest = std::find(rest, end, '\n') + 1;
    }
    if (rest == end) return;
    block.messages.push_back(
        {.first_line = block.num_lines - num_skipped, .offset = message.offset});
    block.num_lines += count_newlines(rest, end);
    block.end = std::copy(rest, end, copied) - block.buffer.get();
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

  const std::shared_ptr<const ColumnMap> layout_;
  const QuotedLines quotes_;
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
                                        schema.text, begins);
}

}  // namespace satrap::data
