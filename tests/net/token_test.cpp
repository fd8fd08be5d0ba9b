#include "src/net/token.h"

#include <string>

#include <gtest/gtest.h>

namespace satrap::net {
namespace {

TEST(Token, MatchesItselfOnly) {
  EXPECT_TRUE(tokens_match("", ""));
  EXPECT_TRUE(tokens_match("secret", "secret"));
  EXPECT_FALSE(tokens_match("secret", "Secret"));
}

TEST(Token, APartOfATokenIsNotTheToken) {
  EXPECT_FALSE(tokens_match("secret", ""));
  EXPECT_FALSE(tokens_match("", "secret"));
  EXPECT_FALSE(tokens_match("secret", "secre"));
  EXPECT_FALSE(tokens_match("secret", std::string("secret\0", 7)));
}

TEST(Token, EveryBitOfEveryByteCounts) {
  const std::string token("a\0\x80\xFF", 4);
  for (std::size_t i = 0; i < token.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string other = token;
      other[i] = static_cast<char>(other[i] ^ (1 << bit));
      EXPECT_FALSE(tokens_match(token, other));
    }
  }
}

}  // namespace
}  // namespace satrap::net
