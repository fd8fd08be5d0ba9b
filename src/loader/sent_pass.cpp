#include "src/loader/sent_pass.h"

#include <new>
#include <optional>
#include <utility>

#include "satrap/core/log.h"
#include "satrap/core/text.h"
#include "satrap/data/dataset.h"

namespace satrap::loader {
namespace {

data::Dataset data_of(const PassRequest& request) {
  const data::Dataset data(request.config, {.first_eval_row = request.first_eval_row});
  return request.place ? data.starting_at(*request.place) : data;
}

}  // namespace

SentPass::SentPass(PassRequest request, std::string client)
    : request_(std::move(request)), client_(std::move(client)) {
  thread_.start("loader-send", [this] { run(); });
}

void SentPass::answer(std::unique_ptr<net::ServerCall> call) { calls_.push(std::move(call)); }

void SentPass::close() {
  const MutexLock lock(mutex_);
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
  auto opened = data::open_deliveries(data_of(request_), request_.pass);
  data::RowDeliveries& deliveries = *opened;  // stays until the thread has been joined
  {
    const MutexLock lock(mutex_);
    if (is_closed_) return;
    deliveries_ = std::move(opened);
  }
  data::RowDelivery delivery;
  std::vector<std::byte> bytes;
  while (deliveries.next(delivery)) {
    bytes.assign(1, static_cast<std::byte>(AnswerKind::kDelivery));
    data::append(delivery, bytes);
    const auto ready = std::chrono::steady_clock::now();
    if (!send(bytes)) break;
    wait_ += std::chrono::steady_clock::now() - ready;
    if (!delivery.is_end) continue;
    tell_waits();
    while (send(bytes)) {
    }
    return;
  }
  tell_waits();
}

/// Says which of both is slower: the reading here, or the client.
void SentPass::tell_waits() const {
  using Seconds = std::chrono::duration<double>;
  const Seconds elapsed = std::chrono::steady_clock::now() - begin_;
  log_info("has read for {} for {}: rows were ready and waited for it {:.0f}% of the time", client_,
           format_duration(elapsed.count()), 100.0 * Seconds(wait_).count() / elapsed.count());
}

/// False once closed.
bool SentPass::send(const std::vector<std::byte>& bytes) {
  const std::optional<std::unique_ptr<net::ServerCall>> call = calls_.pop();
  if (!call) return false;
  (*call)->reply(bytes);
  return true;
}

}  // namespace satrap::loader
