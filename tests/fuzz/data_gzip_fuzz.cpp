// Files packed by gzip: any bytes behind the first ones are unpacked or refused, however they are
// read.
#include "tests/fuzz/unpack.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  satrap::fuzz::unpack_twice("\x1F\x8B" + std::string(satrap::fuzz::text_of(data, size)));
  return 0;
}
