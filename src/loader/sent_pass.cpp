#include "src/loader/sent_pass.h"

#include <new>
#include <optional>
#include <utility>

namespace satrap::loader {

SentPass::SentPass(PassRequest request) : request_(std::move(request)) {
  thread_.start("loader-send", [this] { run(); });
}

void SentPass::answer(std::unique_ptr<net::ServerCall> call) { calls_.push(std::move(call)); }

void SentPass::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  calls_.close();
  if (deliveries_) deliveries_->close();
}

void SentPass::run() {
  std::vector<std::byte> last;
  try {
    send_deliveries();
    return;
  } catch (const std::bad_alloc&) {
    last = error_bytes(ErrorCode::kUnavailable, "out of memory for the rows that are read ahead");
  } catch (const Error& error) {
    last = error_bytes(error.code(), error.what());
  } catch (const std::exception& error) {
    last = error_bytes(ErrorCode::kInternal, error.what());
  }
  while (send(last)) {
  }
}

void SentPass::send_deliveries() {
  auto opened = data::open_deliveries(request_.config, request_.pass);
  {
    const std::lock_guard lock(mutex_);
    if (is_closed_) return;
    deliveries_ = std::move(opened);
  }
  data::RowDelivery delivery;
  std::vector<std::byte> bytes;
  while (deliveries_->next(delivery)) {
    bytes.assign(1, static_cast<std::byte>(AnswerKind::kDelivery));
    data::append(delivery, bytes);
    if (!send(bytes)) return;
    while (delivery.is_end && send(bytes)) {
    }
    if (delivery.is_end) return;
  }
}

/// False once closed.
bool SentPass::send(const std::vector<std::byte>& bytes) {
  const std::optional<std::unique_ptr<net::ServerCall>> call = calls_.pop();
  if (!call) return false;
  (*call)->reply(bytes);
  return true;
}

}  // namespace satrap::loader
