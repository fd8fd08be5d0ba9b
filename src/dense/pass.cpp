#include "src/dense/pass.h"

#include "satrap/core/error.h"

namespace satrap::dense {
namespace {

// Sizes of scratch matrices are rounded up to a cache line, so that all begin at one.
std::int64_t whole_lines(std::int64_t floats) { return (floats + 15) / 16 * 16; }

template <class T>
MatrixView<T> view(T* base, const Parameter& p) {
  if (p.shape.size() == 2) return {base + p.offset, p.shape[0], p.shape[1]};
  return {base + p.offset, 1, p.size()};
}

}  // namespace

Pass::Pass(const Layout& layout,
           const float* parameters,
           const float* buffers,
           std::int64_t max_rows,
           Precision precision)
    : layout_(layout),
      parameters_(parameters),
      buffers_(buffers),
      gradients_(layout.num_parameters()),
      new_buffers_(layout.num_buffer_values()),
      gemm_(precision),
      is_finished_(layout.parameters().size()) {
  std::int64_t total = 0;
  for (const Layout::Scratch& s : layout.scratch()) {
    scratch_offset_.push_back(total);
    total += whole_lines(s.cols * (s.fixed_rows > 0 ? s.fixed_rows : max_rows));
  }
  scratch_ = AlignedBuffer(total);
}

void Pass::begin(const Begin& begin) {
  begin_ = begin;
  is_finished_.assign(is_finished_.size(), false);
  first_finished_ = is_finished_.size();
}

void Pass::finished(ParameterId id) {
  if (begin_.sum == nullptr) return;
  is_finished_[id] = true;
  const std::size_t before = first_finished_;
  while (first_finished_ > 0 && is_finished_[first_finished_ - 1]) --first_finished_;
  if (first_finished_ == before) return;
  begin_.sum->advance(begin_.replica, layout_.parameters()[first_finished_].offset);
}

ConstMatrix Pass::value(ParameterId id) const {
  return view<const float>(parameters_, layout_.parameters()[id]);
}

Matrix Pass::gradient(ParameterId id) {
  return view<float>(gradients_.data(), layout_.parameters()[id]);
}

const float* Pass::buffer(BufferId id) const { return buffers_ + layout_.buffers()[id].offset; }

float* Pass::new_buffer(BufferId id) { return new_buffers_.data() + layout_.buffers()[id].offset; }

Matrix Pass::scratch(ScratchId id) {
  const Layout::Scratch& s = layout_.scratch()[id];
  return {scratch_.data() + scratch_offset_[id], s.fixed_rows > 0 ? s.fixed_rows : rows(), s.cols};
}

}  // namespace satrap::dense
