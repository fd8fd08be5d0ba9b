#pragma once

#include <optional>
#include <string>

namespace satrap::prepare {

/// The MD5 (RFC 1321) of a file's bytes, in 32 hexadecimal digits, as publishers of data give it;
/// none where OpenSSL does not allow MD5, as under FIPS. Throws Error(kIo).
std::optional<std::string> md5_of_file(const std::string& path);

}  // namespace satrap::prepare
