#include "src/pipeline/memory_plan.h"

#include "satrap/core/error.h"
#include "satrap/core/text.h"

namespace satrap::pipeline {
namespace {

constexpr std::int64_t kFloat = 4;

// Of an id: key, plan and lists of misses (backend/views.h), with the room that batches differ by.
constexpr std::int64_t kBytesPerId = 160;

// libtorch keeps the outputs of layers for the backward pass. Their widths are those of the pooled
// rows or less, in a handful of copies.
constexpr std::int64_t kCopiesOfColumns = 8;

// What its kernels, cuBLAS' workspace and the context of CUDA take before the first pass.
constexpr std::int64_t kLibtorchBytes = std::int64_t{768} << 20;

}  // namespace

MemoryPlan plan_memory(const BatchNeeds& needs) {
  const std::int64_t values = needs.columns + needs.numbers;
  MemoryPlan plan;
  plan.free = needs.free_bytes;
  plan.cache = needs.cache_bytes;
  plan.batches =
      needs.batches * needs.examples * (needs.ids * kBytesPerId + 2 * needs.columns * kFloat);
  if (needs.num_parameters == 0) return plan;
  plan.network = needs.num_parameters * (2 + needs.optimizer_values) * kFloat;
  if (!needs.has_libtorch) return plan;
  plan.libtorch = kLibtorchBytes + kCopiesOfColumns * needs.examples * values * kFloat;
  return plan;
}

void MemoryPlan::check() const {
  if (needed() <= free) return;
  const std::int64_t left = free - (needed() - cache);
  throw Error(
      ErrorCode::kInvalidConfig,
      concat("embedding.cache.memory: ", format_bytes(cache),
             " do not fit in the GPU's memory: ", describe(), "; ",
             left > 0 ? concat("write at most ", format_bytes(left), ", or ") : std::string("use "),
             "a smaller data.batch_size, train.prefetch_batches or network"));
}

std::string MemoryPlan::describe() const {
  std::string text =
      concat(format_bytes(cache), " for rows, ", format_bytes(batches), " for batches");
  if (network > 0) text += concat(", ", format_bytes(network), " for the network");
  if (libtorch > 0) text += concat(", about ", format_bytes(libtorch), " for libtorch");
  return concat(text, " of the ", format_bytes(free), " that are free");
}

}  // namespace satrap::pipeline
