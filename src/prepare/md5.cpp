#include "src/prepare/md5.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <openssl/evp.h>

#include "satrap/core/file.h"

namespace satrap::prepare {

std::optional<std::string> md5_of_file(const std::string& path) {
  constexpr std::int64_t kPieceBytes = std::int64_t{1} << 20;
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(),
                                                                   EVP_MD_CTX_free);
  if (EVP_DigestInit_ex(context.get(), EVP_md5(), nullptr) != 1) return std::nullopt;
  FileReader file(path);
  std::vector<std::byte> piece(static_cast<std::size_t>(kPieceBytes));
  while (!file.at_end()) {
    const std::int64_t size = std::min(kPieceBytes, file.size() - file.bytes_read());
    const auto bytes = std::span(piece).first(static_cast<std::size_t>(size));
    file.read(bytes);
    if (EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) != 1) return std::nullopt;
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (EVP_DigestFinal_ex(context.get(), digest.data(), &size) != 1) return std::nullopt;
  std::string text;
  for (const unsigned char byte : std::span(digest).first(size)) {
    text += fmt::format("{:02x}", byte);
  }
  return text;
}

}  // namespace satrap::prepare
