#pragma once

#include <string>

#include "satrap/core/error.h"

namespace satrap::net {

/// The kind of a failure between two processes.
enum class NetFailure {
  kTimeout,   // a deadline passed; its connection is then closed
  kClosed,    // the peer died, hung or hung up, or this side has closed the connection
  kRefused,   // the peer refused: wrong token, version or name, too large
  kProtocol,  // the peer sent something that no valid peer sends
  kRemote,    // the peer received the request and could not do it; the connection is fine
  kStopped,   // this process is to end (Deadline::unless)
};

/// The Error for failures that involve another process. Its code is kIo.
class NetError : public Error {
 public:
  NetError(NetFailure failure, const std::string& message)
      : Error(ErrorCode::kIo, message), failure_(failure) {}
  NetFailure failure() const { return failure_; }

  /// Whether the same request may succeed on a new connection.
  bool is_connection_lost() const {
    return failure_ == NetFailure::kTimeout || failure_ == NetFailure::kClosed ||
           failure_ == NetFailure::kProtocol;
  }

 private:
  NetFailure failure_;
};

}  // namespace satrap::net
