#include "src/pipeline/memory_plan.h"

#include "satrap/core/error.h"
#include "satrap/core/text.h"

namespace satrap::pipeline {
namespace {

constexpr std::int64_t kFloat = 4;

// An id's key, its part of the plan and of the lists of misses (backend/views.h).
constexpr std::int64_t kBytesPerId = 128;

// libtorch keeps the outputs of layers for the backward pass. Their widths are those of the pooled
// rows or less, in a handful of copies.
constexpr std::int64_t kCopiesOfColumns = 8;

// What its kernels, cuBLAS' workspace and the context of CUDA take before the first pass.
constexpr std::int64_t kLibtorchBytes = std::int64_t{768} << 20;

/// As make_room takes it.
constexpr std::int64_t with_room(std::int64_t bytes) { return bytes + bytes / 4; }

}  // namespace

MemoryPlan plan_memory(const BatchNeeds& needs) {
  const std::int64_t values = needs.columns + needs.numbers;
  MemoryPlan plan;
  plan.free = needs.free_bytes;
  plan.cache = needs.cache_bytes;
  const std::int64_t bytes = needs.ids * kBytesPerId + 2 * needs.device_columns * kFloat;
  plan.batches = with_room(needs.batches * needs.examples * bytes);
  if (needs.exchanges_rows) {
    // As many keys come to this rank as it asks of others; the vectors are of one batch at a time.
    plan.exchange = with_room(needs.batches * needs.examples * needs.ids * kBytesPerId +
                              2 * needs.examples * needs.columns * kFloat);
  }
  if (needs.sums_in_order) plan.exchange += with_room(needs.num_parameters * kFloat);
  if (needs.num_parameters == 0) return plan;
  plan.network = needs.num_parameters * (2 + needs.optimizer_values) * kFloat;
  if (!needs.has_libtorch) return plan;
  plan.libtorch = kLibtorchBytes + kCopiesOfColumns * needs.examples * values * kFloat;
  return plan;
}

void MemoryPlan::check() const {
  if (needed() <= free) return;
  const std::int64_t left = (free - (needed() - cache)) * 9 / 10;
  throw Error(
      ErrorCode::kInvalidConfig,
      concat("embedding.cache.memory: ", format_bytes(cache),
             " do not fit in the GPU's memory: ", describe(), "; ",
             left > 0 ? concat("write ", format_bytes(left), " or less, or ") : std::string("use "),
             "a smaller data.batch_size, train.prefetch_batches or network"));
}

std::string MemoryPlan::describe() const {
  std::string text = concat("at least ", format_bytes(cache), " for rows, ", format_bytes(batches),
                            " for batches");
  if (network > 0) text += concat(", ", format_bytes(network), " for the network");
  if (exchange > 0) text += concat(", ", format_bytes(exchange), " for what GPUs exchange");
  if (libtorch > 0) text += concat(", about ", format_bytes(libtorch), " for libtorch");
  return concat(text, " of the ", format_bytes(free), " that are free");
}

}  // namespace satrap::pipeline
