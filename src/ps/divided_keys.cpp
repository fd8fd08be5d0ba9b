#include "src/ps/divided_keys.h"

#include <algorithm>

#include "satrap/core/error.h"
#include "satrap/table/sharding.h"

namespace satrap::ps {
namespace {

std::int64_t table_number(Key key) { return static_cast<std::int64_t>(table_of(key)); }

void check_ascending(std::span<const Key> keys) {
  bool ascends = true;
  for (std::size_t i = 1; i < keys.size(); ++i) ascends &= keys[i - 1] < keys[i];
  if (!ascends) throw Error(ErrorCode::kInvalidData, "the keys do not ascend");
}

void check_shard(const ShardLayout& layout, Key key) {
  const std::int64_t shard = table::shard_of(key, layout.num_shards);
  if (shard == layout.shard) return;
  throw Error(ErrorCode::kInvalidData,
              concat("id ", id_of(key), " of table ", table_number(key), " is of shard ", shard,
                     ", this is shard ", layout.shard, " of ", layout.num_shards));
}

}  // namespace

void DividedKeys::assign(const ShardLayout& layout, std::span<const Key> keys) {
  check_ascending(keys);
  if (!keys.empty() && table_number(keys.back()) >= layout.num_tables()) {
    throw Error(ErrorCode::kInvalidData, concat("a key of table ", table_number(keys.back()),
                                                ", there are ", layout.num_tables()));
  }
  num_workers_ = layout.num_workers;
  table_begin_.assign(1, 0);
  table_values_.assign(1, 0);
  part_begin_.clear();
  auto next = keys.begin();
  for (std::int64_t table = 0; table < layout.num_tables(); ++table) {
    const auto begin = next;
    const auto end = std::partition_point(begin, keys.end(),
                                          [&](Key key) { return table_number(key) <= table; });
    if (begin != end) {  // they ascend: if these two are right, so are those between
      check_shard(layout, *begin);
      check_shard(layout, *(end - 1));
    }
    for (std::int64_t worker = 0; worker < num_workers_; ++worker) {
      const std::int64_t partition = worker * table::kPartitions / num_workers_;
      next = std::partition_point(next, end, [&](Key key) {
        return table::partition_of(key, layout.num_shards) < partition;
      });
      part_begin_.push_back(next - keys.begin());
    }
    next = end;
    part_begin_.push_back(end - keys.begin());
    table_begin_.push_back(end - keys.begin());
    table_values_.push_back(table_values_.back() +
                            (end - begin) * layout.dims[static_cast<std::size_t>(table)]);
  }
  keys_.assign(keys.begin(), keys.end());
}

}  // namespace satrap::ps
