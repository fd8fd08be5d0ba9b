#include "src/ps/pack_answer.h"

#include <algorithm>
#include <cstring>

#include "satrap/core/error.h"
#include "satrap/core/float_codec.h"

namespace satrap::ps {
namespace {

void pack(std::span<const RowAnswer> answers, std::span<std::byte> packed) {
  std::ranges::fill(packed, std::byte{0});
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto shift = static_cast<int>(i % kAnswersPerByte) * kBitsPerAnswer;
    packed[i / kAnswersPerByte] |= static_cast<std::byte>(answers[i]) << shift;
  }
}

}  // namespace

std::size_t pack_answer(const ShardLayout& layout,
                        const DividedKeys& keys,
                        std::span<const RowAnswer> answers,
                        FloatType encoding,
                        std::span<std::byte> reply) {
  const auto packed_bytes = static_cast<std::size_t>(answers_bytes(std::ssize(answers)));
  pack(answers, reply.subspan(sizeof(ReplyPrefix), packed_bytes));
  std::byte* const weights = reply.data() + sizeof(ReplyPrefix) + packed_bytes;
  std::byte* to = weights;
  for (std::int64_t table = 0; table < layout.num_tables(); ++table) {
    const std::int64_t dim = layout.dims[static_cast<std::size_t>(table)];
    for (std::int64_t worker = 0; worker < layout.num_workers; ++worker) {
      const DividedKeys::Range range = keys.part(table, worker);
      if (range.begin == range.end) continue;
      const auto sent =
          std::count(answers.begin() + range.begin, answers.begin() + range.end, RowAnswer::kSent);
      const std::int64_t bytes = sent * dim * bytes_of(encoding);
      const std::byte* const from =
          weights + keys.value_begin(table, range.begin, dim) * bytes_of(encoding);
      if (from != to) std::memmove(to, from, static_cast<std::size_t>(bytes));
      to += bytes;
    }
  }
  return static_cast<std::size_t>(to - reply.data());
}

void unpack_answers(std::span<const std::byte> packed, std::span<RowAnswer> answers) {
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto shift = static_cast<int>(i % kAnswersPerByte) * kBitsPerAnswer;
    answers[i] = static_cast<RowAnswer>((packed[i / kAnswersPerByte] >> shift) & std::byte{3});
    if (answers[i] > RowAnswer::kKept) {
      throw Error(ErrorCode::kInvalidData, concat("no answer for key ", i, " of ", answers.size()));
    }
  }
}

}  // namespace satrap::ps
