#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "satrap/core/float_codec.h"
#include "satrap/net/reconnecting_client.h"
#include "satrap/net/request.h"
#include "satrap/ps/dense_client.h"
#include "satrap/ps/step_client.h"
#include "src/ps/shard_wire.h"

namespace satrap::ps {

/// Bytes aligned to 64, not initialised, that never shrink.
class AlignedBytes {
 public:
  std::span<std::byte> resize(std::size_t bytes) {
    constexpr std::size_t kAlignment = 64;
    if (bytes > capacity_) {
      const std::size_t wanted = (bytes + bytes / 4 + kAlignment) / kAlignment * kAlignment;
      data_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, wanted)));
      capacity_ = data_ ? wanted : 0;
      if (!data_) throw std::bad_alloc();
    }
    size_ = bytes;
    return span();
  }
  std::span<std::byte> span() const { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  std::unique_ptr<std::byte[], Free> data_;
  std::size_t capacity_ = 0, size_ = 0;
};

/// The memory and the answers of one exchange with every shard.
struct DenseExchange::State {
  struct Shard {
    AlignedBytes reply;  // ReplyPrefix, then parameters and the state, if requested
    std::unique_ptr<net::ReconnectingClient::Pending> push_answer, pull_answer;
  };
  std::vector<Shard> shards;  // [num_shards]
};

struct StepRows::State {
  /// The part of one shard. Its keys are `num_tables` ranges of the keys of the step; weights
  /// and gradients are sent in that order, without gaps.
  struct Shard {
    std::int64_t num_keys = 0, num_values = 0;  // values: floats
    AlignedBytes reply;                         // ReplyPrefix, then weights
    std::vector<float> decoded;                 // weights, unless they are sent as fp32
    net::RequestBuffer push;                    // RequestPrefix, then gradients
    std::vector<float> to_encode;               // gradients, the same
    std::unique_ptr<net::ReconnectingClient::Pending> pull_answer, push_answer;
  };
  std::vector<Shard> shards;            // [num_shards]
  std::vector<std::int64_t> stretches;  // [num_tables, num_shards + 1]: numbers of keys
  std::vector<const float*> weights;    // [num_keys]
  std::vector<float*> gradients;        // [num_keys]
  std::int64_t read_version = 0;
  bool is_under_way = false;

  /// Finds, per table, where the keys of each shard begin. `keys` ascend.
  void divide(std::span<const Key> keys,
              std::span<const std::int64_t> dims,  // [num_tables]
              std::int64_t num_shards);

  /// Numbers of the keys [first, second) of a table on a shard.
  std::pair<std::int64_t, std::int64_t> stretch(std::size_t table, std::size_t shard) const {
    const std::size_t at = table * (shards.size() + 1) + shard;
    return {stretches[at], stretches[at + 1]};
  }

  /// A shard's keys, in the order of its request.
  void copy_keys_of(std::int64_t shard, std::span<const Key> all, std::span<std::byte> to) const {
    const std::size_t num_tables = stretches.size() / (shards.size() + 1);
    std::byte* next = to.data();
    for (std::size_t t = 0; t < num_tables; ++t) {
      const auto [begin, end] = stretch(t, static_cast<std::size_t>(shard));
      const auto part =
          all.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
      if (!part.empty()) std::memcpy(next, part.data(), part.size_bytes());
      next += part.size_bytes();
    }
  }

  /// pointers[u] = address of the values of key u, in memory that starts at base(shards[s]).
  template <class T, class Base>
  void fill_pointers(std::vector<T*>& pointers, std::span<const std::int64_t> dims, Base&& base) {
    for (std::size_t s = 0; s < shards.size(); ++s) {
      T* at = base(shards[s]);
      for (std::size_t t = 0; t < dims.size(); ++t) {
        const auto [begin, end] = stretch(t, s);
        for (std::int64_t u = begin; u < end; ++u, at += dims[t]) {
          pointers[static_cast<std::size_t>(u)] = at;
        }
      }
    }
  }
};

}  // namespace satrap::ps
