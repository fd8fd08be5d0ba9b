#include "src/trainer/frequent_texts.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "satrap/core/text.h"

namespace satrap::trainer {
namespace {

/// At most kMaxBytes of it, and no half of a character.
std::string cut(std::string_view text) {
  constexpr int kMaxHalf = 3;  // bytes of a character that lacks its last
  std::string kept(text.substr(0, FrequentTexts::kMaxBytes));
  if (kept.size() == text.size() || !is_utf8(text)) return kept;
  for (int i = 0; i < kMaxHalf && !is_utf8(kept); ++i) kept.pop_back();
  return kept;
}

}  // namespace

void FrequentTexts::add(std::uint64_t hash, std::string_view text) {
  const auto found = texts_.find(hash);
  if (found != texts_.end()) {
    ++found->second.count;
  } else if (texts_.size() < kMaxTexts) {
    texts_.emplace(hash, Counted{.count = 1, .text = cut(text)});
  } else {
    for (auto at = texts_.begin(); at != texts_.end();) {
      at = --at->second.count == 0 ? texts_.erase(at) : std::next(at);
    }
  }
}

const std::string* FrequentTexts::find(std::uint64_t hash) const {
  const auto found = texts_.find(hash);
  return found == texts_.end() ? nullptr : &found->second.text;
}

std::vector<std::uint64_t> most_frequent(std::vector<std::uint64_t> hashes, std::size_t most) {
  std::ranges::sort(hashes);
  std::vector<std::pair<std::size_t, std::uint64_t>> found;  // rows, hash
  for (std::size_t begin = 0, end = 0; begin < hashes.size(); begin = end) {
    while (end < hashes.size() && hashes[end] == hashes[begin]) ++end;
    const std::size_t rows = end - begin;
    if (rows * FrequentTexts::kMaxTexts > hashes.size()) found.emplace_back(rows, hashes[begin]);
  }
  std::ranges::sort(found, [](const auto& a, const auto& b) {
    return std::tuple(b.first, a.second) < std::tuple(a.first, b.second);
  });
  found.resize(std::min(most, found.size()));
  std::vector<std::uint64_t> frequent;
  for (const auto& [rows, hash] : found) frequent.push_back(hash);
  return frequent;
}

}  // namespace satrap::trainer
