#include "src/net/proof.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "satrap/core/error.h"

namespace satrap::net {
namespace {

TEST(Proof, SecretMatchesItselfOnly) {
  EXPECT_TRUE(is_same_secret("", ""));
  EXPECT_TRUE(is_same_secret("secret", "secret"));
  EXPECT_FALSE(is_same_secret("secret", ""));
  EXPECT_FALSE(is_same_secret("", "secret"));
  EXPECT_FALSE(is_same_secret("secret", "secre"));
  EXPECT_FALSE(is_same_secret("secret", std::string("secret\0", 7)));
}

TEST(Proof, EveryBitOfASecretCounts) {
  const std::string secret("a\0\x80\xFF", 4);
  for (std::size_t i = 0; i < secret.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string other = secret;
      other[i] = static_cast<char>(other[i] ^ (1 << bit));
      EXPECT_FALSE(is_same_secret(secret, other));
    }
  }
}

TEST(Proof, NoncesAreNotRepeated) {
  std::set<std::string> nonces;
  for (int i = 0; i < 100; ++i) nonces.insert(random_nonce());
  EXPECT_EQ(nonces.size(), 100U);
  EXPECT_EQ(nonces.begin()->size(), kNonceBytes);
}

TEST(Proof, DependsOnEverythingItIsAbout) {
  const Statement about{Role::kClient, 1, "ab", "c", "text"};
  std::set<std::string> proofs{proof_of("token", about), proof_of("Token", about),
                               proof_of("", about)};
  for (const Statement& other : {Statement{Role::kServer, 1, "ab", "c", "text"},
                                 Statement{Role::kClient, 2, "ab", "c", "text"},
                                 Statement{Role::kClient, 1, "a", "bc", "text"},
                                 Statement{Role::kClient, 1, "ab", "ctext", ""},
                                 Statement{Role::kClient, 1, "ab", "c", "texT"}}) {
    proofs.insert(proof_of("token", other));
  }
  EXPECT_EQ(proofs.size(), 8U);
  EXPECT_EQ(proof_of("token", about), proof_of("token", about));
}

TEST(Proof, AnEmptyTokenServesThisMachineOnly) {
  for (const char* address : {"127.0.0.1", "127.1.2.3", "::1"}) {
    EXPECT_NO_THROW(check_token("", address)) << address;
  }
  for (const char* address : {"0.0.0.0", "10.0.0.1", "::", "fe80::1", "192.127.0.1"}) {
    EXPECT_NO_THROW(check_token("secret", address));
    try {
      check_token("", address);
      ADD_FAILURE() << address;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
      EXPECT_NE(std::string(error.what()).find("SATRAP_TOKEN"), std::string::npos);
      EXPECT_NE(std::string(error.what()).find(address), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace satrap::net
