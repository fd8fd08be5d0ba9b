#include "src/prepare/parts.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "satrap/data/compress.h"
#include "satrap/data/output_file.h"
#include "src/prepare/file_names.h"

namespace satrap::prepare {
namespace {

constexpr std::int64_t kBlockLines = 8192;
constexpr std::int64_t kBlocksPerThread = 2;  // so that threads wait less for the slowest

struct Job {
  LineBlock block;
  std::map<std::string, std::string> rows, compressed;
  std::map<std::string, std::int64_t> counts;
};

void convert_block(const Convert& convert, Job& job) {
  for (auto& [split, text] : job.rows) text.clear();
  convert(job.block, job.rows);
  job.counts.clear();
  for (const auto& [split, text] : job.rows) {
    if (text.empty()) continue;
    job.counts[split] = std::ranges::count(text, '\n');
    data::compress(data::Compression::kZstd, text, job.compressed[split]);
  }
}

/// The parts of one piece, which get their names together, when it is complete.
class PieceFiles {
 public:
  explicit PieceFiles(Workspace& workspace) : workspace_(workspace) {}

  void add(const Job& job) {
    for (const auto& [split, count] : job.counts) {
      std::unique_ptr<data::OutputFile>& file = files_[split];
      if (file == nullptr) {
        file = std::make_unique<data::OutputFile>(
            workspace_.path(part_name(split, workspace_.num_pieces())));
      }
      file->write(job.compressed.at(split));
      rows_[split] += count;
    }
  }

  void finish() {
    workspace_.begin_piece(rows_);
    for (const auto& [split, file] : files_) file->finish();
    workspace_.finish_piece();
  }

 private:
  Workspace& workspace_;
  std::map<std::string, std::unique_ptr<data::OutputFile>> files_;
  std::map<std::string, std::int64_t> rows_;
};

/// Lines of a piece that are still to be read, as many blocks as threads work on at a time.
std::size_t read_blocks(LineSource& source, std::vector<Job>& jobs, std::int64_t& lines_left) {
  std::size_t count = 0;
  while (count < jobs.size() && lines_left > 0 &&
         source.next(jobs[count].block, std::min(kBlockLines, lines_left))) {
    lines_left -= jobs[count++].block.num_lines;
  }
  return count;
}

void skip_pieces(Workspace& workspace, LineSource& source) {
  LineBlock block;
  std::int64_t left = workspace.num_pieces() * workspace.request().part_rows;
  while (left > 0 && source.next(block, std::min(kBlockLines, left))) {
    left -= block.num_lines;
    workspace.show("reading what is done", source, block.first_row);
  }
}

}  // namespace

void write_parts(Workspace& workspace, LineSource& source, const Convert& convert) {
  skip_pieces(workspace, source);
  ThreadPool& pool = workspace.pool();
  std::vector<Job> jobs(static_cast<std::size_t>(kBlocksPerThread * pool.num_threads()));
  while (true) {
    PieceFiles files(workspace);
    std::int64_t lines_left = workspace.request().part_rows;
    std::size_t count = 0;
    while ((count = read_blocks(source, jobs, lines_left)) > 0) {
      pool.parallel_for(static_cast<std::int64_t>(count), [&](std::int64_t i) {
        convert_block(convert, jobs[static_cast<std::size_t>(i)]);
      });
      for (std::size_t i = 0; i < count; ++i) files.add(jobs[i]);
      workspace.show("writing parts", source, jobs[count - 1].block.first_row);
    }
    if (lines_left == workspace.request().part_rows) return;
    files.finish();
  }
}

}  // namespace satrap::prepare
