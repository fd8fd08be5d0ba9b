#include "satrap/core/error.h"

namespace satrap {

int exit_status(ErrorCode code) {
  constexpr int kBySigpipe = 141;  // 128 and its number
  if (code == ErrorCode::kClosedPipe) return kBySigpipe;
  return code == ErrorCode::kInvalidConfig ? 2 : 1;
}

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  std::string text = concat(file, ":", line, ": check failed: ", condition);
  if (!message.empty()) text += concat(": ", message);
  throw Error(ErrorCode::kInternal, text);
}

}  // namespace satrap
