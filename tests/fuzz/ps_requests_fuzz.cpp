// The requests of ranks to a shard, without the transport. The first byte says how the job begins;
// then each request is 5 bytes (operation, rank, step, 2 of size) and its payload. Every request is
// answered or refused, and the shard ends.
#include <array>
#include <cstring>
#include <string>

#include "satrap/core/log.h"
#include "src/ps/shard.h"
#include "src/ps/shard_wire.h"
#include "tests/fuzz/folder.h"
#include "tests/fuzz/server_call.h"

namespace {

using namespace satrap;  // NOLINT

constexpr std::uint64_t kSession = 5, kSeed = 7;

std::vector<table::TableSpec> tables_of_job() {
  std::vector<table::TableSpec> tables(3);
  const RowOptimizerType optimizers[] = {RowOptimizerType::kAdagrad, RowOptimizerType::kAdam,
                                         RowOptimizerType::kSgd};
  for (std::size_t t = 0; t < tables.size(); ++t) {
    tables[t].name = std::string(1, static_cast<char>('a' + t));
    tables[t].id = static_cast<TableId>(t);
    tables[t].dim = static_cast<std::int64_t>(3 * t + 1);
    tables[t].optimizer.type = optimizers[t];
  }
  tables[1].weights = FloatType::kBf16;
  tables[2].limits.capacity_rows = 100;
  return tables;
}

class Requests {
 public:
  Requests(ps::Shard& shard, std::string_view bytes, const std::string& folder)
      : shard_(shard), rest_(bytes), folder_(folder) {}

  void begin(unsigned kind) {
    ps::BeginMessage message;
    message.job.session = kSession;
    message.job.num_ranks = 1 + kind % 2;
    message.job.async = (kind & 2) != 0;
    message.job.deterministic = !message.job.async && (kind & 4) != 0;
    message.job.staleness = kind / 8 % 4;
    message.tables = ps::describe_tables(tables_of_job(), kSeed, 1);
    fuzz::Answers begun;
    send(ps::op_of(ps::ShardOp::kBegin), {.client = 1, .sequence = ++sequence_}, to_json(message),
         begun);
    begun.wait_for_one();
  }

  bool send_next() {
    std::array<std::uint8_t, 5> header{};
    if (rest_.size() < header.size()) return false;
    std::memcpy(header.data(), rest_.data(), header.size());
    rest_.remove_prefix(header.size());
    std::string payload(rest_.substr(0, header[3] + 256U * header[4]));
    rest_.remove_prefix(payload.size());
    const net::Op op = header[0] % 0x20;
    net::RequestTag tag{.client = 1, .step = static_cast<std::int8_t>(header[2])};
    tag.rank = header[1] % 4 - 1;
    tag.sequence = (header[0] & 0x80) != 0 ? sequence_ : ++sequence_;  // the last one again
    if ((header[0] & 0x40) == 0 && payload.size() >= sizeof(ps::RequestPrefix)) {
      std::memcpy(payload.data(), &kSession, sizeof(kSession));
    }
    if (op == ps::op_of(ps::ShardOp::kWriteSnapshot)) {  // nowhere else
      payload.resize(sizeof(ps::RequestPrefix));
      payload += folder_;
    }
    send(op, tag, payload, answers_);
    return true;
  }

 private:
  void send(net::Op op, net::RequestTag tag, const std::string& payload, fuzz::Answers& answers) {
    fuzz::MessageBytes bytes(payload.size());
    if (!payload.empty()) std::memcpy(bytes.span().data(), payload.data(), payload.size());
    auto call = std::make_unique<net::ServerCall>(std::unique_ptr<net::ServerCall::State>(
        new net::ServerCall::State{op, tag, std::move(bytes), answers}));
    fuzz::is_refused([&] { shard_.handle(call); });
  }

  ps::Shard& shard_;
  std::string_view rest_;
  const std::string& folder_;
  std::uint64_t sequence_ = 0;
  fuzz::Answers answers_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return -1;
  set_log_level(LogLevel::kOff);
  static const fuzz::Folder folder("snapshot");
  const std::string path = folder.path();
  ps::ShardServerOptions options;
  options.num_workers = 2;
  auto shard = std::make_unique<ps::Shard>(tables_of_job(), kSeed, options);
  Requests requests(*shard, fuzz::text_of(data + 1, size - 1), path);
  requests.begin(data[0]);
  while (requests.send_next()) {
  }
  shard.reset();  // answers what it still holds
  return 0;
}
