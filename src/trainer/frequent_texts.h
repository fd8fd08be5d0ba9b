#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace satrap::trainer {

/// Keeps texts, by their hashes, of a stream with any number of different ones, in bounded memory:
/// every text that is more than 1 in kMaxTexts of the stream is there at its end (Misra, Gries
/// 1982, "Finding repeated elements"). Long texts are cut. One thread.
class FrequentTexts {
 public:
  static constexpr std::size_t kMaxTexts = 4096;
  static constexpr std::size_t kMaxBytes = 64;  // of a text

  void add(std::uint64_t hash, std::string_view text);

  /// Null: it is not there.
  const std::string* find(std::uint64_t hash) const;

 private:
  struct Counted {
    std::int64_t count = 0;
    std::string text;
  };
  std::unordered_map<std::uint64_t, Counted> texts_;
};

/// The `most` most frequent of some hashes that are each more than 1 in FrequentTexts::kMaxTexts of
/// them, the most frequent first, equal ones by hash. So whatever the ranks among which a stream is
/// divided, one of them at least has the text.
std::vector<std::uint64_t> most_frequent(std::vector<std::uint64_t> hashes, std::size_t most);

}  // namespace satrap::trainer
