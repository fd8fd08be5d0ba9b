#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace satrap::net {

inline constexpr std::size_t kNonceBytes = 32;
inline constexpr std::size_t kProofBytes = 32;

/// Bytes that nobody can predict, of the system's random source. Throws Error(kUnavailable).
std::string random_nonce();

enum class Role : std::uint8_t { kClient = 1, kServer = 2 };

/// What one end of a connection says, and both nonces of the connection.
struct Statement {
  Role role;
  std::uint64_t magic;  // of the protocol
  std::string_view client_nonce;
  std::string_view server_nonce;
  std::string_view text;
};

/// HMAC-SHA256 under the job's token: shows that the end knows it and that the text is its own, for
/// this connection and this direction only.
std::string proof_of(std::string_view token, const Statement& statement);

/// Whether two secrets are equal, in a time that depends only on their lengths.
bool is_same_secret(std::string_view a, std::string_view b);

/// Throws Error(kInvalidConfig) for an empty token, unless `address` is of this machine alone: a
/// process that listens at another would serve everybody.
void check_token(std::string_view token, const std::string& address);

}  // namespace satrap::net
