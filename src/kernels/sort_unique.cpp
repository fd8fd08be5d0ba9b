#include "satrap/kernels/sort_unique.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "satrap/core/error.h"

namespace satrap {
namespace {

constexpr std::size_t kInsertionSortSize = 24;
constexpr int kMaxDigitBits = 10;
// Bits beyond log2(n) that the radix passes use: two distinct keys of uniform bits then agree
// in them with probability 1/16 per key.
constexpr int kSpareBits = 4;

std::uint64_t bits(const KeyOccurrence& item) { return static_cast<std::uint64_t>(item.key); }

void insertion_sort(std::span<KeyOccurrence> items) {
  for (std::size_t i = 1; i < items.size(); ++i) {
    const KeyOccurrence item = items[i];
    std::size_t j = i;
    for (; j > 0 && bits(items[j - 1]) > bits(item); --j) items[j] = items[j - 1];
    items[j] = item;
  }
}

/// Makes one stable counting pass by the `digit_bits` bits above `shift`, from `from` to `to`.
void counting_pass(std::span<const KeyOccurrence> from,
                   std::span<KeyOccurrence> to,
                   int shift,
                   int digit_bits) {
  std::array<std::uint32_t, std::size_t{1} << kMaxDigitBits> next;
  const std::uint64_t mask = (std::uint64_t{1} << digit_bits) - 1;
  std::fill_n(next.begin(), mask + 1, 0U);
  for (const KeyOccurrence& item : from) ++next[(bits(item) >> shift) & mask];
  std::uint32_t sum = 0;
  for (std::size_t digit = 0; digit <= mask; ++digit) {
    sum += std::exchange(next[digit], sum);
  }
  for (const KeyOccurrence& item : from) to[next[(bits(item) >> shift) & mask]++] = item;
}

/// Position of the highest bit in which keys differ, plus one; 0 if all are equal.
int differing_bits(std::span<const KeyOccurrence> items) {
  const std::uint64_t first = bits(items.front());
  std::uint64_t difference = 0;
  for (const KeyOccurrence& item : items) difference |= bits(item) ^ first;
  return static_cast<int>(std::bit_width(difference));
}

}  // namespace

void sort_by_key(std::span<KeyOccurrence> items, std::span<KeyOccurrence> scratch) {
  SATRAP_CHECK(scratch.size() == items.size(), "scratch of ", scratch.size(), " for ", items.size(),
               " items");
  SATRAP_CHECK(items.size() < (std::size_t{1} << 32), "too many items: ", items.size());
  if (items.size() <= kInsertionSortSize) return insertion_sort(items);
  const int top = differing_bits(items);
  if (top == 0) return;

  const int wanted = std::min(top, static_cast<int>(std::bit_width(items.size())) + kSpareBits);
  const int num_passes = (wanted + kMaxDigitBits - 1) / kMaxDigitBits;
  const int digit_bits = (wanted + num_passes - 1) / num_passes;
  const int bottom = std::max(0, top - num_passes * digit_bits);
  std::span<KeyOccurrence> from = items, to = scratch;
  for (int shift = bottom; shift < top; shift += digit_bits) {
    counting_pass(from, to, shift, std::min(digit_bits, top - shift));
    std::swap(from, to);
  }
  if (from.data() != items.data()) std::copy(from.begin(), from.end(), items.begin());
  if (bottom == 0) return;

  // Runs that agree above `bottom`: mostly equal keys, which are in order already.
  for (std::size_t begin = 0; begin < items.size();) {
    const std::uint64_t prefix = bits(items[begin]) >> bottom;
    bool sorted = true;
    std::size_t end = begin + 1;
    for (; end < items.size() && bits(items[end]) >> bottom == prefix; ++end) {
      sorted &= bits(items[end - 1]) <= bits(items[end]);
    }
    if (!sorted) {
      sort_by_key(items.subspan(begin, end - begin), scratch.subspan(begin, end - begin));
    }
    begin = end;
  }
}

DistinctCounts count_distinct(std::span<const KeyOccurrence> sorted, int group_shift) {
  if (sorted.empty()) return {};
  DistinctCounts counts{1, 1};
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const std::uint64_t difference = bits(sorted[i]) ^ bits(sorted[i - 1]);
    counts.keys += difference != 0;
    counts.groups += (difference >> group_shift) != 0;
  }
  return counts;
}

}  // namespace satrap
