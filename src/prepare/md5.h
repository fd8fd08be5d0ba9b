#pragma once

#include <string>

namespace satrap::prepare {

/// The MD5 (RFC 1321) of a file's bytes, in 32 hexadecimal digits, as publishers of data give it.
/// Throws Error(kIo), and Error(kUnavailable) where OpenSSL does not allow MD5.
std::string md5_of_file(const std::string& path);

}  // namespace satrap::prepare
