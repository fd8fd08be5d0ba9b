// The part of Shard for the dense parameters of async jobs.

#include <cstring>
#include <utility>

#include "src/ps/shard.h"
#include "src/ps/shard_request.h"

namespace satrap::ps {
namespace {

std::span<const float> floats_of(std::span<const std::byte> bytes) {
  if (bytes.size() % sizeof(float) != 0)
    refuse(bytes.size(), " bytes are not a whole number of floats");
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

std::shared_ptr<DensePart> dense_of(RunningJob& job) {
  const MutexLock lock(job.dense_mutex);
  if (!job.dense) refuse("the shard has no dense parameters yet");
  return job.dense;
}

}  // namespace

void Shard::put_dense(RunningJob& job, Call& call) {
  const std::span<const std::byte> body = body_of(*call);
  DensePrefix prefix;
  if (body.size() < sizeof(prefix)) refuse("dense parameters of ", body.size(), " bytes");
  std::memcpy(&prefix, body.data(), sizeof(prefix));
  const std::span<const float> values = floats_of(body.subspan(sizeof(prefix)));
  if (values.size() % 3 != 0) refuse(values.size(), " floats, not three for each parameter");
  if (prefix.type > DenseOptimizerType::kAdamW) {
    refuse("dense optimizer number ", static_cast<std::uint32_t>(prefix.type));
  }
  if (!job.config.async) refuse("dense parameters are on shards in async mode only");
  const DenseOptimizer optimizer{
      prefix.type,  prefix.momentum, prefix.weight_decay,       prefix.beta1,
      prefix.beta2, prefix.eps,      prefix.initial_accumulator};
  const MutexLock lock(job.dense_mutex);
  const net::RequestTag& tag = call->tag();
  if (!job.dense) {
    job.dense =
        std::make_shared<DensePart>(optimizer, prefix.num_updates, values, layout_.num_workers);
    job.dense_tag = tag;
  } else if (job.dense_tag.client != tag.client || job.dense_tag.sequence != tag.sequence) {
    refuse("dense parameters are put once");
  } else {
    ++job.num_repeated;
  }
  call->reply({});
}

void Shard::pull_dense(RunningJob& job, const RequestPrefix& prefix, Call& call) {
  auto request = std::make_shared<DenseRequest>();
  request->part = dense_of(job);
  request->with_state = (prefix.flags & kWithState) != 0;
  request->reply = call->reply_space(static_cast<std::int64_t>(sizeof(ReplyPrefix)) +
                                     request->part->num_values(request->with_state) *
                                         static_cast<std::int64_t>(sizeof(float)));
  request->call = std::move(call);
  request->parts_left = layout_.num_workers;
  for (auto& worker : workers_) worker->dense(request);
}

void Shard::push_dense(RunningJob& job, const RequestPrefix& prefix, Call& call) {
  const std::int64_t number = call->tag().step;
  auto request = std::make_shared<DenseRequest>();
  request->part = dense_of(job);
  const std::span<const float> gradient = floats_of(body_of(*call));
  if (std::ssize(gradient) != request->part->size()) {
    refuse("a dense gradient of ", gradient.size(), " floats, the shard has ",
           request->part->size(), " parameters");
  }
  request->gradient = gradient.data();
  request->scale = prefix.scale;
  request->lr = prefix.lr;
  request->rank = call->tag().rank;
  request->parts_left = layout_.num_workers;
  RunningJob::Rank& rank = job.rank_of(call->tag());
  const MutexLock lock(rank.mutex);
  if (number <= rank.last_dense_push) {
    ++job.num_repeated;
    return call->reply({});
  }
  rank.last_dense_push = number;
  if (++rank.dense_pushes_under_way <= RunningJob::Limits::kDensePushes) call->reply({});
  request->call = std::move(call);
  for (auto& worker : workers_) worker->dense(request);
}

}  // namespace satrap::ps
