#include "satrap/core/ids.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/hash.h"

namespace satrap {
namespace {

TEST(FoldId, KeepsWhatFitsAndHashesTheRest) {
  EXPECT_EQ(fold_id(0), 0u);
  EXPECT_EQ(fold_id(kIdMask), kIdMask);
  EXPECT_EQ(fold_id(kIdMask + 1), hash64(kIdMask + 1) & kIdMask);
  EXPECT_LE(fold_id(~0ULL), kIdMask);
}

TEST(MixId, IsUndoneByUnmixId) {
  const RandomStream random{hash64(1)};
  std::vector<std::uint64_t> ids = {0, 1, 2, kIdMask, kIdMask - 1, std::uint64_t{1} << 53};
  for (std::uint64_t n = 0; n < 10'000; ++n) ids.push_back(random.bits(n) & kIdMask);
  for (const std::uint64_t id : ids) {
    ASSERT_LE(mix_id(id), kIdMask);
    ASSERT_EQ(unmix_id(mix_id(id)), id);
    ASSERT_EQ(mix_id(unmix_id(id)), id);
  }
}

// Chi-square of the top 8 bits of the mixed ids `first, first + stride, ...`.
double chi_square_of_top_bits(std::uint64_t stride) {
  constexpr int kBins = 256;
  constexpr int kPerBin = 200;
  std::vector<int> counts(kBins);
  for (std::uint64_t i = 0; i < kBins * kPerBin; ++i) {
    ++counts[mix_id((i * stride) & kIdMask) >> (kIdBits - 8)];
  }
  double chi_square = 0;
  for (const int count : counts) chi_square += (count - kPerBin) * (count - kPerBin);
  return chi_square / kPerBin;
}

TEST(MixId, SpreadsRegularIdsEvenlyOverItsTopBits) {
  // 255 degrees of freedom: mean 255, standard deviation 22.6. A lower value (a lattice) is
  // harmless.
  for (const std::uint64_t stride :
       {1ULL, 2ULL, 10ULL, 26ULL, 1ULL << 16, 1ULL << 32, 1ULL << 38}) {
    EXPECT_LT(chi_square_of_top_bits(stride), 255 + 6 * 22.6) << "stride " << stride;
  }
}

TEST(Key, HasTheTableAndTheIdItWasMadeOf) {
  const Key key = make_key(TableId{1023}, 123456789);
  EXPECT_EQ(table_of(key), TableId{1023});
  EXPECT_EQ(id_of(key), 123456789u);
  EXPECT_EQ(mixed_id_of(key), mix_id(123456789));
}

TEST(Key, ManyAtOnceAreThoseOfEach) {
  const RandomStream random{hash64(2)};
  for (const std::uint64_t most : {kIdMask, ~std::uint64_t{0}}) {
    for (std::size_t count = 0; count < 70; ++count) {
      std::vector<std::uint64_t> ids;
      for (std::size_t i = 0; i < count; ++i) ids.push_back(random.bits(count * 70 + i) & most);
      std::vector<Key> keys(count + 1, Key{42});
      make_keys(TableId{7}, ids, keys.data());
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(keys[i], make_key(TableId{7}, ids[i]));
      ASSERT_EQ(keys[count], Key{42});
    }
  }
}

TEST(Key, SortsByTableFirst) {
  EXPECT_LT(make_key(TableId{0}, 5), make_key(TableId{1}, 0));
  EXPECT_LT(make_key(TableId{1}, ~0ULL), make_key(TableId{2}, 0));
}

}  // namespace
}  // namespace satrap
