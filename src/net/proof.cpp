#include "src/net/proof.h"

#include <array>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "satrap/core/error.h"
#include "src/net/bytes.h"

namespace satrap::net {
namespace {

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address.starts_with("::ffff:127.") || address == "::1";
}

}  // namespace

std::string random_nonce() {
  std::array<unsigned char, kNonceBytes> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
    throw Error(ErrorCode::kUnavailable, "the system has no random numbers for a handshake");
  }
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string proof_of(std::string_view token, const Statement& statement) {
  const std::string message = ByteWriter()
                                  .put(static_cast<std::uint8_t>(statement.role))
                                  .put(statement.magic)
                                  .put_text(statement.client_nonce)
                                  .put_text(statement.server_nonce)
                                  .put_text(statement.text)
                                  .bytes();
  std::array<unsigned char, kProofBytes> proof{};
  unsigned size = 0;
  const unsigned char* done = HMAC(EVP_sha256(), token.data(), static_cast<int>(token.size()),
                                   reinterpret_cast<const unsigned char*>(message.data()),
                                   message.size(), proof.data(), &size);
  SATRAP_CHECK(done != nullptr && size == proof.size(), "HMAC-SHA256 of ", size, " bytes");
  return {reinterpret_cast<const char*>(proof.data()), proof.size()};
}

bool is_same_secret(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

void check_token(std::string_view token, const std::string& address) {
  if (!token.empty() || is_loopback(address)) return;
  throw Error(ErrorCode::kInvalidConfig,
              concat("environment: SATRAP_TOKEN, the secret of the job, is ",
                     "not set or empty, and other machines can reach ", address,
                     ": set it to the same random text for all processes of the job (`openssl rand "
                     "-hex 16` prints one), or listen at 127.0.0.1"));
}

}  // namespace satrap::net
