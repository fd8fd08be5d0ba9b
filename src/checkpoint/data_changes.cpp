#include "src/checkpoint/data_changes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

namespace satrap::checkpoint {
namespace {

using data::DataFile;
using Files = std::span<const DataFile>;

constexpr std::int64_t kMaxShown = 10;  // changes of one kind

/// The lines of each kind, of which the first are kept.
class ChangeList {
 public:
  void add(DataChangeKind kind, const std::string& text) {
    if (++counts_[kind] <= kMaxShown) changes_.push_back({kind, "data file " + text});
  }
  /// Shows only the first one of many files.
  void add_first(DataChangeKind kind,
                 std::string_view what,
                 std::int64_t count,
                 const auto& first) {
    if (count == 0) return;
    changes_.push_back({kind, fmt::format("{} data file{} {}: {}{}", count, count == 1 ? "" : "s",
                                          what, first, count == 1 ? "" : " and so on")});
  }
  void add_appended(std::int64_t count, const std::string& names) {
    changes_.push_back({DataChangeKind::kAppended, fmt::format("{} data file{} appended: {}", count,
                                                               count == 1 ? "" : "s", names)});
  }
  bool has(DataChangeKind kind) const { return counts_.contains(kind); }
  std::vector<DataChange> take() {
    for (const auto& [kind, count] : counts_) {
      if (count <= kMaxShown) continue;
      changes_.push_back({kind, fmt::format("and {} more", count - kMaxShown)});
    }
    return std::move(changes_);
  }

 private:
  std::map<DataChangeKind, std::int64_t> counts_;
  std::vector<DataChange> changes_;
};

/// The places of files in a list, by their paths; the first of a path that is there twice.
class Places {
 public:
  explicit Places(Files files) {
    for (std::int64_t place = 0; const DataFile& file : files) places_.emplace(file.path, place++);
  }
  std::optional<std::int64_t> of(const std::string& path) const {
    const auto found = places_.find(path);
    return found == places_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::unordered_map<std::string_view, std::int64_t> places_;
};

class DataComparison {
 public:
  DataComparison(Files before, std::int64_t rows_read, Files now, const PrefixOf& prefix_of)
      : rows_read_(rows_read), prefix_of_(prefix_of) {
    const auto first_ahead = std::ranges::find_if(before, [&](const DataFile& file) {
      return file.first_row < 0 || file.first_row >= rows_read;
    });
    const auto num_read = static_cast<std::size_t>(first_ahead - before.begin());
    const Files read = before.first(num_read), ahead = before.subspan(num_read);
    const bool is_last = ahead.empty();
    const std::size_t begin_ahead = compare_read(read, now, is_last);
    compare_ahead(ahead, now.subspan(begin_ahead));
    list_.add_first(DataChangeKind::kNone, "under another path, the same as far as they were read",
                    num_moved_, first_moved_);
    list_.add_first(DataChangeKind::kNone,
                    "modified or copied; size, and beginning and end where they were read, are the "
                    "same",
                    num_touched_, first_touched_);
    list_.add_first(DataChangeKind::kNone,
                    "without identity, standard input or a pipe, not compared", num_pipes_,
                    first_pipe_);
  }

  std::vector<DataChange> take() { return list_.take(); }

 private:
  enum class Content { kSame, kGrown, kOther };

  /// The size is all that is known of a file that has not been opened.
  Content content(const DataFile& old, const DataFile& now) const {
    if (!old.is_regular()) return Content::kSame;
    if (!old.was_opened() && old.bytes == now.bytes) return Content::kSame;
    if (!old.was_opened() || now.bytes < old.bytes) return Content::kOther;
    if (prefix_of_(now.path, old.bytes).checksum != old.checksum) return Content::kOther;
    return now.bytes == old.bytes ? Content::kSame : Content::kGrown;
  }

  std::string difference(const DataFile& old, const DataFile& now) const {
    if (!now.is_regular()) return fmt::format("{} bytes -> a pipe", old.bytes);
    if (old.bytes != now.bytes) return fmt::format("{} bytes -> {} bytes", old.bytes, now.bytes);
    return fmt::format("other content of the same {} bytes: checksum {} -> {}", old.bytes,
                       old.checksum, prefix_of_(now.path, now.bytes).checksum);
  }

  /// Whether the rows at the end of a file that has grown come after the position. `is_last`: no
  /// other file followed.
  bool grew_ahead(const DataFile& old, const DataFile& now, bool is_last) const {
    const bool read_whole = old.num_rows >= 0 && old.first_row + old.num_rows <= rows_read_;
    return !read_whole || (is_last && prefix_of_(now.path, old.bytes).ends_line);
  }

  void note_same(const DataFile& old, const DataFile& now) {
    const bool checksum_covers_all = old.was_opened() && old.bytes <= 2 * data::kChecksumBytes;
    if (!old.is_regular()) {
      if (num_pipes_++ == 0) first_pipe_ = old.path;
    } else if (old.path != now.path) {
      if (num_moved_++ == 0) first_moved_ = old.path + " -> " + now.path;
    } else if (old.modified_ns != now.modified_ns && !checksum_covers_all) {
      if (num_touched_++ == 0) first_touched_ = now.path;
    }
  }

  /// Returns the number of files of `now` that belong to those that were read.
  std::size_t compare_read(Files read, Files now, bool is_last) {
    std::size_t same = 0;
    while (same < std::min(read.size(), now.size()) &&
           content(read[same], now[same]) == Content::kSame) {
      ++same;
    }
    const bool may_grow = same + 1 == read.size() && now.size() > same &&
                          content(read[same], now[same]) == Content::kGrown;
    const bool has_grown = may_grow && grew_ahead(read[same], now[same], is_last);
    if (same < read.size() && !has_grown) return explain(read, now, is_last);
    for (std::size_t i = 0; i < same; ++i) note_same(read[i], now[i]);
    if (has_grown) {
      list_.add(DataChangeKind::kAhead, fmt::format("{} has grown at its end: {}", now[same].path,
                                                    difference(read[same], now[same])));
    }
    return read.size();
  }

  /// As compare_read, of files that differ: names the differences, by the paths.
  std::size_t explain(Files read, Files now, bool is_last) {
    constexpr DataChangeKind kRead = DataChangeKind::kRead;
    const Places old_places(read), places(now);
    std::optional<std::int64_t> last;  // the place of the last one found
    std::int64_t end = 0;
    for (const DataFile& old : read) {
      const std::optional<std::int64_t> place = places.of(old.path);
      if (!place) {
        list_.add(kRead, fmt::format("{} ({} bytes) is gone", old.path, old.bytes));
        continue;
      }
      const DataFile& file = now[static_cast<std::size_t>(*place)];
      const Content found = content(old, file);
      const bool is_current = &old == &read.back();
      if (found == Content::kOther ||
          (found == Content::kGrown && !(is_current && grew_ahead(old, file, is_last)))) {
        list_.add(kRead, fmt::format("{}: {}", old.path, difference(old, file)));
      }
      if (last && *place < *last) {
        list_.add(kRead, fmt::format("{} is in another order: it came after {}", old.path,
                                     now[static_cast<std::size_t>(*last)].path));
      }
      last = place;
      end = std::max(end, *place + 1);
    }
    const std::string* next = nullptr;
    for (std::int64_t i = end; i-- > 0;) {
      const std::string& path = now[static_cast<std::size_t>(i)].path;
      if (old_places.of(path)) {
        next = &path;
      } else {
        list_.add(kRead, fmt::format("{} was added before {}", path, *next));
      }
    }
    if (!list_.has(kRead)) {  // of a path that is there several times
      list_.add(kRead, fmt::format("{} is no longer listed as often", read.back().path));
    }
    return static_cast<std::size_t>(end);
  }

  void compare_ahead(Files ahead, Files now) {
    const auto is_same = [&](const DataFile& old, const DataFile& file) {
      return content(old, file) == Content::kSame;
    };
    constexpr DataChangeKind kAhead = DataChangeKind::kAhead;
    const Places old_places(ahead), places(now);
    // Another file may well have the size of one that was never opened: its path counts, too.
    const auto takes_place_of = [&](const DataFile& old, const DataFile& file) {
      const bool is_named = old.path == file.path || old.was_opened() ||
                            (!places.of(old.path) && !old_places.of(file.path));
      return is_named && is_same(old, file);
    };
    if (now.size() >= ahead.size() &&
        std::ranges::equal(ahead, now.first(ahead.size()), takes_place_of)) {
      for (std::size_t i = 0; i < ahead.size(); ++i) note_same(ahead[i], now[i]);
      return add_appended(now.subspan(ahead.size()));
    }
    std::int64_t last = -1, end = 0;
    for (const DataFile& old : ahead) {
      const std::optional<std::int64_t> place = places.of(old.path);
      if (!place) {
        list_.add(kAhead, fmt::format("{} ({} bytes), not read yet, is gone", old.path, old.bytes));
        continue;
      }
      const DataFile& file = now[static_cast<std::size_t>(*place)];
      if (is_same(old, file)) {
        note_same(old, file);
      } else {
        list_.add(kAhead, fmt::format("{}, not read yet: {}", old.path, difference(old, file)));
      }
      if (*place < last) {
        list_.add(kAhead, fmt::format("{}, not read yet, is in another order", old.path));
      }
      last = *place;
      end = std::max(end, last + 1);
    }
    for (const DataFile& file : now.first(static_cast<std::size_t>(end))) {
      if (old_places.of(file.path)) continue;
      list_.add(kAhead, fmt::format("{} was added among those not read yet", file.path));
    }
    add_appended(now.subspan(static_cast<std::size_t>(end)));
  }

  void add_appended(Files files) {
    std::string names;
    for (const DataFile& file : files.first(std::min<std::size_t>(files.size(), kMaxShown))) {
      names += (names.empty() ? "" : ", ") + file.path;
    }
    if (std::ssize(files) > kMaxShown) {
      names += fmt::format(" and {} more", std::ssize(files) - kMaxShown);
    }
    if (!files.empty()) list_.add_appended(std::ssize(files), names);
  }

  const std::int64_t rows_read_;
  const PrefixOf& prefix_of_;
  ChangeList list_;
  std::int64_t num_moved_ = 0, num_touched_ = 0, num_pipes_ = 0;
  std::string first_moved_, first_touched_, first_pipe_;
};

}  // namespace

std::vector<DataChange> data_changes(const std::vector<DataFile>& before,
                                     std::int64_t rows_read,
                                     const std::vector<DataFile>& now,
                                     const PrefixOf& prefix_of) {
  return DataComparison(before, rows_read, now, prefix_of).take();
}

}  // namespace satrap::checkpoint
