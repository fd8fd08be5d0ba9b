#include "src/prepare/sorted_lines.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "satrap/core/error.h"
#include "satrap/core/json.h"
#include "satrap/core/text.h"
#include "satrap/data/compress.h"
#include "satrap/data/output_file.h"

namespace satrap::prepare {
namespace {

constexpr std::int64_t kRunsInMemory = 4;
constexpr std::int64_t kSharesOfMemory = 16;  // a run, its sorted copy, its bytes: four each
constexpr std::int64_t kLeastRunBytes = 1024;

/// Takes the number before the next tab from the text.
std::int64_t take_number(std::string_view& text) {
  std::int64_t number = 0;
  const char* const end = std::from_chars(text.data(), text.data() + text.size(), number).ptr;
  SATRAP_CHECK(end != text.data() + text.size() && *end == '\t', "line of a run: ", text);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return number;
}

}  // namespace

LineSorter::LineSorter(Workspace& workspace, std::string name, std::int64_t max_runs)
    : workspace_(workspace),
      name_(std::move(name)),
      run_bytes_(static_cast<std::size_t>(
          std::max(kLeastRunBytes, workspace.request().memory_bytes / kSharesOfMemory))),
      max_runs_(max_runs) {
  runs_.emplace_back();
}

std::string LineSorter::run_path(std::int64_t number) const {
  return workspace_.temporary_path(fmt::format("{}-{:05}.zst", name_, number));
}

void LineSorter::add(const SortKey& key, std::string_view text) {
  Run& run = runs_.back();
  run.entries.push_back({key, run.text.size(), text.size()});
  run.text.append(text);
  ++num_lines_;
  if (run.text.size() + run.entries.size() * sizeof(Entry) < run_bytes_) return;
  if (std::ssize(runs_) == kRunsInMemory) write_runs();
  runs_.emplace_back();
}

void LineSorter::write_runs() {
  for (Run& run : runs_) run.number = num_runs_++;
  if (num_runs_ > max_runs_) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("--memory: sorting in ", format_bytes(workspace_.request().memory_bytes),
                       " needs more than ", max_runs_,
                       " files; allow more memory, with "
                       "--overwrite"));
  }
  workspace_.pool().parallel_for(
      std::ssize(runs_), [&](std::int64_t i) { write(runs_[static_cast<std::size_t>(i)]); });
  runs_.clear();
}

void LineSorter::write(Run& run) const {
  const std::string path = run_path(run.number);
  if (std::filesystem::exists(path)) return;
  std::ranges::stable_sort(run.entries, {}, &Entry::key);
  std::string sorted, compressed;
  sorted.reserve(run.text.size());
  for (const Entry& entry : run.entries) {
    fmt::format_to(std::back_inserter(sorted), "{}\t{}\t", entry.key.first, entry.key.second);
    sorted.append(run.text, entry.begin, entry.size).push_back('\n');
  }
  data::compress(data::Compression::kZstd, sorted, compressed);
  data::OutputFile file(path);
  file.write(compressed);
  file.finish();
}

void LineSorter::finish(nlohmann::ordered_json found) {
  if (runs_.back().entries.empty()) runs_.pop_back();
  write_runs();
  found["runs"] = num_runs_;
  found["lines"] = num_lines_;
  workspace_.finish_stage(name_, std::move(found));
}

std::int64_t LineSorter::num_lines() const { return integer_at(found(), "lines"); }

std::vector<std::string> LineSorter::run_paths() const {
  std::vector<std::string> paths;
  for (std::int64_t i = 0; i < integer_at(found(), "runs"); ++i) paths.push_back(run_path(i));
  return paths;
}

SortedLines::SortedLines(const LineSorter& sorter) {
  for (const std::string& path : sorter.run_paths()) {
    runs_.push_back(std::make_unique<data::TextLines>(path));
  }
  texts_.resize(runs_.size());
  for (std::size_t run = 0; run < runs_.size(); ++run) push_head(run);
}

/// Runs are in the order in which their lines came, so that the number of the run decides.
bool SortedLines::is_later(const Head& a, const Head& b) {
  return std::pair(a.key, a.run) > std::pair(b.key, b.run);
}

void SortedLines::push_head(std::size_t run) {
  std::string_view& text = texts_[run];
  if (!runs_[run]->next(text)) return;
  const std::int64_t first = take_number(text);
  const std::int64_t second = take_number(text);
  heap_.push_back({{first, second}, run});
  std::ranges::push_heap(heap_, is_later);
}

bool SortedLines::next(SortKey& key, std::string_view& text) {
  if (has_taken_) push_head(taken_);
  has_taken_ = !heap_.empty();
  if (!has_taken_) return false;
  std::ranges::pop_heap(heap_, is_later);
  key = heap_.back().key;
  taken_ = heap_.back().run;
  text = texts_[taken_];
  heap_.pop_back();
  return true;
}

SortedSource::SortedSource(const LineSorter& sorter)
    : lines_(sorter), num_lines_(sorter.num_lines()) {}

bool SortedSource::next(LineBlock& block, std::int64_t max_lines) {
  block.text.clear();
  block.file = "sorted rows";
  block.first_row = next_row_;
  block.first_line = next_row_ + 1;
  SortKey key;
  std::string_view text;
  for (block.num_lines = 0; block.num_lines < max_lines && lines_.next(key, text);
       ++block.num_lines) {
    fmt::format_to(std::back_inserter(block.text), "{}\t{}\n", key.first, text);
  }
  next_row_ += block.num_lines;
  return block.num_lines > 0;
}

double SortedSource::progress() const {
  return num_lines_ == 0 ? 1.0 : static_cast<double>(next_row_) / static_cast<double>(num_lines_);
}

}  // namespace satrap::prepare
