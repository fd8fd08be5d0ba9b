#include "src/ps/pack_answer.h"

#include <cstring>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/table/sharding.h"

namespace satrap::ps {
namespace {

using enum RowAnswer;

TEST(PackAnswer, WeightsOfWhatIsSentStandTogetherInTheOrderOfKeys) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    const ShardLayout layout{.num_workers = 1 + round % 5, .dims = {4, 1, 3}};
    std::vector<Key> all;
    for (std::uint64_t id = 0; id < static_cast<std::uint64_t>(round % 50); ++id) {
      all.push_back(make_key(static_cast<TableId>(random() % 3), id));
    }
    std::ranges::sort(all);
    DividedKeys keys;
    keys.assign(layout, all);
    std::vector<RowAnswer> answers;
    for (std::size_t i = 0; i < all.size(); ++i) {
      answers.push_back(static_cast<RowAnswer>(random() % 3));
    }
    const std::int64_t head =
        static_cast<std::int64_t>(sizeof(ReplyPrefix)) + answers_bytes(std::ssize(all));
    std::vector<std::byte> reply(static_cast<std::size_t>(head + keys.num_values() * kFloatBytes));
    std::vector<float> expected;
    // Each worker writes the rows of its part one after the other.
    for (std::int64_t t = 0; t < layout.num_tables(); ++t) {
      const std::int64_t dim = layout.dims[static_cast<std::size_t>(t)];
      for (std::int64_t w = 0; w < layout.num_workers; ++w) {
        const auto [begin, end] = keys.part(t, w);
        if (begin == end) continue;
        std::byte* to = reply.data() + head + keys.value_begin(t, begin, dim) * kFloatBytes;
        for (std::int64_t u = begin; u < end; ++u) {
          if (answers[static_cast<std::size_t>(u)] != kSent) continue;
          for (std::int64_t d = 0; d < dim; ++d, to += kFloatBytes) {
            expected.push_back(static_cast<float>(u * 10 + d));
            std::memcpy(to, &expected.back(), sizeof(float));
          }
        }
      }
    }
    const std::size_t size = pack_answer(layout, keys, answers, FloatType::kFp32, reply);
    ASSERT_EQ(size, static_cast<std::size_t>(head) + expected.size() * sizeof(float));
    std::vector<float> found(expected.size());
    if (!found.empty())
      std::memcpy(found.data(), reply.data() + head, size - static_cast<std::size_t>(head));
    EXPECT_EQ(found, expected);
    std::vector<RowAnswer> unpacked(answers.size());
    unpack_answers(std::span(reply).subspan(sizeof(ReplyPrefix)), unpacked);
    EXPECT_EQ(unpacked, answers);
  }
}

TEST(PackAnswer, WhatIsNoAnswerIsRefused) {
  const std::vector<std::byte> packed(4, std::byte{0b00'11'00'00});
  std::vector<RowAnswer> answers(2);
  unpack_answers(packed, answers);
  answers.resize(3);
  EXPECT_THROW(unpack_answers(packed, answers), Error);
}

}  // namespace
}  // namespace satrap::ps
