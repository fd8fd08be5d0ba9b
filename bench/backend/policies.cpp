// Misses of the cache's policies on streams of keys, beside Belady's optimum: by the operations of
// the host device, as a trainer uses them. bench/journal/caches.md has results; `cache_policies
// --help`.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <limits>
#include <numeric>
#include <queue>
#include <sstream>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench/backend/zipf.h"
#include "satrap/backend/cache.h"
#include "satrap/backend/device_plan.h"
#include "satrap/backend/window.h"
#include "satrap/core/error.h"

namespace satrap::bench {
namespace {

using backend::CacheSize;
using backend::EvictionPolicy;

/// Batches of keys, in order, with repetitions.
struct Stream {
  std::vector<std::vector<Key>> batches;
  std::int64_t num_keys = 0;    // distinct, of the stream
  std::int64_t num_unique = 0;  // distinct of each batch, summed
  std::int64_t max_unique = 0;  // of a batch
  std::int64_t max_ids = 0;     // of a batch

  void count() {
    std::unordered_set<Key> all;
    for (const auto& batch : batches) {
      const std::unordered_set<Key> keys(batch.begin(), batch.end());
      all.insert(keys.begin(), keys.end());
      num_unique += std::ssize(keys);
      max_unique = std::max<std::int64_t>(max_unique, std::ssize(keys));
      max_ids = std::max<std::int64_t>(max_ids, std::ssize(batch));
    }
    num_keys = std::ssize(all);
  }
  double unique_per_batch() const {
    return static_cast<double>(num_unique) / static_cast<double>(batches.size());
  }
};

/// Ranks of a power law. Before each batch, a share `drift` of the rows exchange their ranks with
/// others.
Stream zipf_stream(double exponent,
                   double drift,
                   std::int64_t rows,
                   std::int64_t ids,
                   std::int64_t num_batches) {
  const RandomStream random{hash64(7)};
  std::uint64_t n = 0;
  std::vector<std::uint64_t> id_of(static_cast<std::size_t>(rows));
  std::iota(id_of.begin(), id_of.end(), std::uint64_t{0});
  Stream stream;
  for (std::int64_t b = 0; b < num_batches; ++b) {
    for (auto i = static_cast<std::int64_t>(drift * static_cast<double>(rows) / 2); i > 0; --i) {
      std::swap(id_of[random.below(n, id_of.size())], id_of[random.below(n + 1, id_of.size())]);
      n += 2;
    }
    std::vector<Key>& batch = stream.batches.emplace_back();
    for (std::int64_t i = 0; i < ids; ++i) {
      const std::uint64_t rank =
          zipf(random.uniform_double(n++), exponent, static_cast<double>(rows));
      batch.push_back(make_key(TableId{}, id_of[rank]));
    }
  }
  stream.count();
  return stream;
}

/// One line per example: its keys, as numbers with blanks between them.
Stream file_stream(const std::string& name, std::int64_t examples) {
  std::ifstream file(name);
  Stream stream;
  std::string line;
  for (std::int64_t row = 0; std::getline(file, line); ++row) {
    if (row % examples == 0) stream.batches.emplace_back();
    std::istringstream numbers(line);
    for (std::uint64_t id = 0; numbers >> id;) {
      stream.batches.back().push_back(make_key(TableId{}, id));
    }
  }
  SATRAP_CHECK(stream.batches.size() > 1, name, ": cannot be read, or has no two batches of ",
               examples, " lines");
  stream.count();
  return stream;
}

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// What a policy does on a stream. Times are CPU time.
struct Result {
  std::int64_t misses = 0;
  double plan_seconds = 0, touch_seconds = 0, resolve_seconds = 0;
  std::int64_t window_bytes = 0;
};

/// A stream through a cache on the host device.
class Run {
 public:
  Run(const Stream& stream, const CacheSize& size, EvictionPolicy policy, std::int64_t window)
      : stream_(stream),
        depth_(policy == EvictionPolicy::kLookahead ? window + 1 : 0),
        window_size_{
            std::max<std::int64_t>(depth_, 1), stream.max_unique,
            std::max<std::int64_t>(1,
                                   static_cast<std::int64_t>(distinct(window) / CacheSize::kWays))},
        cache_(*device_, layout_, size, policy, {}),
        window_(*device_, window_size_, {}),
        scratch_(*device_, stream.max_ids, layout_),
        plan_(*device_, scratch_, stream.max_unique) {
    std::iota(overflow_.begin(), overflow_.end(), static_cast<std::int32_t>(size.num_slots()));
  }

  Result misses() {
    if (depth_ > 0) result_.window_bytes = window_size_.bytes();
    std::int64_t touched = 0;
    for (std::int64_t b = 1; b <= std::ssize(stream_.batches); ++b) {
      while (depth_ > 0 && touched < std::min(b + depth_ - 1, std::ssize(stream_.batches))) {
        touch(++touched, b - 1);
      }
      resolve(b);
    }
    return result_;
  }

 private:
  /// An upper bound for the distinct keys of a window: so many entries of the directory are enough.
  double distinct(std::int64_t window) const {
    return std::min(static_cast<double>(stream_.num_keys),
                    static_cast<double>(window + 1) * stream_.unique_per_batch());
  }

  template <class Function>
  void timed(double& seconds, const Function& function) {
    const double start = cpu_seconds();
    function();
    seconds += cpu_seconds() - start;
  }

  backend::PlanView plan(std::int64_t batch) {
    const std::vector<Key>& keys = stream_.batches[static_cast<std::size_t>(batch - 1)];
    const std::int64_t offsets[] = {0, std::ssize(keys)};
    const backend::BagFeature feature{0, 0, Pooling::kSum, 1};
    backend::Bags bags;
    bags.keys = keys.data();
    bags.offsets = offsets;
    bags.features = &feature;
    bags.num_ids = std::ssize(keys);
    bags.num_examples = bags.num_features = bags.num_vectors = 1;
    bags.row_stride = layout_.padded_dim;
    const backend::PlanView view = plan_.view(bags.num_ids);
    timed(result_.plan_seconds, [&] {
      device_->build_plan({bags, cache_.view().size.num_sets, layout_.padded_dim, view}, {});
    });
    return view;
  }

  void touch(std::int64_t batch, std::int64_t resolved) {
    const backend::PlanView view = plan(batch);
    timed(result_.touch_seconds, [&] {
      device_->touch({cache_.view(),
                      window_.view(),
                      view,
                      {static_cast<std::uint32_t>(batch), static_cast<std::uint32_t>(resolved)}},
                     {});
    });
  }

  void resolve(std::int64_t batch) {
    const backend::PlanView view = plan(batch);
    const auto number = static_cast<std::uint32_t>(batch);
    backend::ResolveArguments arguments{.batch = number, .completed = number - 1};
    arguments.overflow_slots = overflow_.data();
    arguments.max_overflow = std::ssize(overflow_);
    if (depth_ > 0) {
      arguments.next_uses = window_.next_uses(number);
      arguments.num_next_uses = window_size_.max_keys;
      arguments.halving_log2 = std::bit_width(static_cast<std::uint32_t>(8 * depth_)) - 1;
    }
    timed(result_.resolve_seconds,
          [&] { device_->resolve({cache_.view(), view, arguments, plan_.misses()}, {}); });
    result_.misses += plan_.misses().counts->misses;
  }

  const Stream& stream_;
  const std::unique_ptr<backend::Device> device_ = backend::make_host_device();
  const RowLayout layout_ = RowLayout::of(1, FloatType::kFp32, RowOptimizerType::kSgd);
  const std::int64_t depth_;
  const backend::WindowSize window_size_;
  const backend::Cache cache_;
  const backend::Window window_;
  const backend::PlanScratch scratch_;
  const backend::DevicePlan plan_;
  std::vector<std::int32_t> overflow_ =
      std::vector<std::int32_t>(static_cast<std::size_t>(stream_.max_unique));
  Result result_;
};

/// Per batch, its keys and the next batch that has each; kNever: none has.
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 4;
using Uses = std::unordered_map<Key, std::int64_t>;

std::vector<Uses> next_uses(const Stream& stream) {
  std::vector<Uses> next(stream.batches.size());
  Uses seen;
  for (std::int64_t b = std::ssize(stream.batches) - 1; b >= 0; --b) {
    Uses& uses = next[static_cast<std::size_t>(b)];
    for (const Key key : stream.batches[static_cast<std::size_t>(b)]) {
      const auto found = seen.find(key);
      uses.try_emplace(key, found == seen.end() ? kNever : found->second);
    }
    for (const auto& [key, use] : uses) seen[key] = b;
  }
  return next;
}

/// How many batches of the stream have each key.
Uses counts_of(const std::vector<Uses>& next) {
  Uses counts;
  for (const Uses& uses : next) {
    for (const auto& [key, use] : uses) ++counts[key];
  }
  return counts;
}

/// Misses in a cache of `rows` rows without sets that knows the keys of the next `window` batches,
/// and how many batches of the whole stream have each key: of the rows that no batch of the window
/// needs the rarest goes, else the one whose next use is farthest, but none that the batch needs.
/// With a window of all batches this is Belady's optimum.
std::int64_t informed(const Stream& stream, std::int64_t rows, std::int64_t window) {
  const std::vector<Uses> next = next_uses(stream);
  const Uses counts = counts_of(next);
  const auto num_batches = std::ssize(next);
  Uses resident;                                               // and the score
  std::priority_queue<std::pair<std::int64_t, Key>> greatest;  // with entries that are out of date
  const auto give = [&](Key key, std::int64_t score) {
    resident[key] = score;
    greatest.emplace(score, key);
  };
  std::int64_t misses = 0;
  for (std::int64_t b = 0; b < num_batches; ++b) {
    if (b + window < num_batches) {
      for (const auto& [key, use] : next[static_cast<std::size_t>(b + window)]) {
        const auto found = resident.find(key);
        if (found != resident.end() && found->second > num_batches) give(key, b + window);
      }
    }
    const Uses& uses = next[static_cast<std::size_t>(b)];
    for (const auto& [key, use] : uses) {
      misses += resident.count(key) == 0 ? 1 : 0;
      resident[key] = -1;  // needed now
    }
    while (std::ssize(resident) > rows && !greatest.empty()) {
      const auto [score, key] = greatest.top();
      greatest.pop();
      const auto found = resident.find(key);
      if (found != resident.end() && found->second == score) resident.erase(found);
    }
    for (const auto& [key, use] : uses) {
      give(key, use <= b + window ? use : kNever - counts.at(key));
    }
  }
  return misses;
}

void compare(const std::string& name, const Stream& stream, double share, double fulls) {
  const double unique = stream.unique_per_batch();
  const double wanted = std::max(share * static_cast<double>(stream.num_keys), 1.2 * unique);
  const CacheSize size{std::max<std::int64_t>(1, std::llround(wanted / CacheSize::kWays)),
                       stream.max_unique};
  const auto window = std::max<std::int64_t>(
      2, std::llround(fulls * static_cast<double>(size.num_slots()) / unique));
  const auto beyond_first = [&](std::int64_t misses) {
    return static_cast<double>(misses - stream.num_keys);
  };
  const double best = beyond_first(informed(stream, size.num_slots(), std::ssize(stream.batches)));
  std::printf("| %s | %.0f %% | %lld | %.1f | %lld | %.1f %% |", name.c_str(), 100 * share,
              static_cast<long long>(size.num_slots()),
              static_cast<double>(size.num_slots()) / unique, static_cast<long long>(window),
              100 * best / static_cast<double>(stream.num_unique));
  double lfu = 0;
  Result ahead;
  const auto print_ratio = [&](double misses) {
    if (best < 0.001 * static_cast<double>(stream.num_unique)) {
      std::printf(" - |");  // of almost nothing
    } else {
      std::printf(" %.3f |", misses / best);
    }
  };
  for (const auto policy :
       {EvictionPolicy::kLru, EvictionPolicy::kLfu, EvictionPolicy::kLookahead}) {
    ahead = Run(stream, size, policy, window).misses();
    const double misses = beyond_first(ahead.misses);
    print_ratio(misses);
    if (policy == EvictionPolicy::kLfu) lfu = misses;
  }
  print_ratio(beyond_first(informed(stream, size.num_slots(), window)));
  const double keys = static_cast<double>(stream.num_unique);
  std::printf(" %.2f | %.0f | %.0f | %.0f |\n", beyond_first(ahead.misses) / std::max(lfu, 1.0),
              ahead.touch_seconds / keys * 1e9, ahead.plan_seconds / 2 / keys * 1e9,
              static_cast<double>(ahead.window_bytes) / (static_cast<double>(window + 1) * unique));
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  CLI::App app(
      "Misses of the cache's policies beyond first sightings, over those of Belady's optimum");
  std::string file, name = "file";
  std::int64_t examples = 256, rows = 100'000, ids = 4096, num_batches = 2400;
  double fulls = 4, zipf_exponent = 0, drift = 0;
  std::vector<double> shares{0.05, 0.1, 0.25};
  app.add_option("--file", file, "Keys, one line per example; else a generated stream");
  app.add_option("--name", name, "Of the stream, in the table");
  app.add_option("--examples", examples, "Lines per batch");
  app.add_option("--zipf", zipf_exponent, "Exponent of a generated stream");
  app.add_option("--drift", drift, "Share of the rows that change their ranks at each batch");
  app.add_option("--rows", rows, "Rows of a generated stream");
  app.add_option("--ids", ids, "Ids of a batch of a generated stream");
  app.add_option("--batches", num_batches, "Of a generated stream");
  app.add_option("--shares", shares, "Caches, as shares of the rows");
  app.add_option("--fulls", fulls, "Window: the batches whose keys fill the cache so many times");
  CLI11_PARSE(app, argc, argv);
  const Stream stream = file.empty() ? zipf_stream(zipf_exponent, drift, rows, ids, num_batches)
                                     : file_stream(file, examples);
  for (const double share : shares) compare(name, stream, share, fulls);
  return 0;
}

}  // namespace
}  // namespace satrap::bench

int main(int argc, char** argv) { return satrap::bench::run(argc, argv); }
