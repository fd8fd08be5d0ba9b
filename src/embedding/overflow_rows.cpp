#include "src/embedding/overflow_rows.h"

#include <algorithm>
#include <numeric>

namespace satrap::embedding {

OverflowRows::OverflowRows(backend::Device& device, const backend::CacheSize& size)
    : device_(device),
      num_rows_(size.overflow_rows),
      changed_end_(num_rows_),
      shared_on_device_(device) {
  const auto bytes = num_rows_ * static_cast<std::int64_t>(sizeof(std::int32_t));
  make_room(free_, device, backend::Place::kPinnedHost, bytes, "overflow rows");
  make_room(free_on_device_, device, backend::Place::kDevice, bytes, "overflow rows");
  std::iota(free_slots(), free_slots() + num_rows_, static_cast<std::int32_t>(size.num_slots()));
}

void OverflowRows::give(backend::ResolveArguments& arguments, backend::StreamRef stream) {
  auto* const free_on_device = reinterpret_cast<std::int32_t*>(free_on_device_.data());
  if (first_free_ < changed_end_) {
    device_.copy(free_on_device + first_free_, free_slots() + first_free_,
                 (changed_end_ - first_free_) * static_cast<std::int64_t>(sizeof(std::int32_t)),
                 stream);
  }
  changed_end_ = 0;
  arguments.overflow_slots = free_on_device + first_free_;
  arguments.max_overflow = num_rows_ - first_free_;

  shared_.clear();
  for (const auto& [tag, row] : rows_) shared_.push_back({.tag = tag, .slot = row.slot});
  arguments.num_shared = std::ssize(shared_);
  if (!shared_.empty()) arguments.shared = shared_on_device_.upload(shared_, stream);
}

void OverflowRows::note_needed(std::span<const backend::OverflowRow> rows, std::uint32_t batch) {
  auto row = rows_.begin();  // both are in the order of tags
  for (const backend::OverflowRow& shared : rows) {
    if (shared.is_needed != 0) row->second.last = batch;
    ++row;
  }
}

void OverflowRows::take(std::span<const Key> keys, std::uint32_t batch) {
  for (const Key key : keys) {
    rows_[backend::tag_of(key)] = {free_slots()[first_free_++], batch, batch};
  }
}

std::span<const OverflowRows::Changed> OverflowRows::release(std::uint32_t completed) {
  changed_.clear();
  for (auto row = rows_.begin(); row != rows_.end();) {
    if (row->second.last > completed) {
      ++row;
      continue;
    }
    list_if_changed(row->first, row->second, completed);
    changed_end_ = std::max(changed_end_, first_free_);
    free_slots()[--first_free_] = row->second.slot;
    row = rows_.erase(row);
  }
  return changed_;
}

std::span<const OverflowRows::Changed> OverflowRows::list_changed(std::uint32_t completed) {
  changed_.clear();
  for (auto& [tag, row] : rows_) list_if_changed(tag, row, completed);
  return changed_;
}

/// A row that no completed batch has needed is as it was fetched, or not yet there.
void OverflowRows::list_if_changed(std::uint64_t tag, Row& row, std::uint32_t completed) {
  const std::uint32_t updated = std::min(row.last, completed);
  if (row.first > completed || row.listed >= updated) return;
  row.listed = completed;
  changed_.push_back({backend::key_of_tag(tag), row.slot});
}

}  // namespace satrap::embedding
