#include "src/dense/heads.h"

#include <utility>

#include "src/dense/ops.h"

namespace satrap::dense {
namespace {

/// Options of layers that others follow: all layers are alike.
MlpOptions inner(MlpOptions options) {
  options.relu_last = options.relu;
  options.dropout_last = true;
  return options;
}

Joined split_as(const ConstJoined& x, Matrix whole) {
  return {whole.columns(0, x.left.cols), whole.columns(x.left.cols, x.right.cols)};
}

void add_wanted(ConstMatrix from, Matrix to) {
  if (to.data != nullptr) add(from, to);
}

}  // namespace

Heads::Heads(Layout& layout,
             const std::string& name,
             std::int64_t in,
             const Output& output,
             MlpOptions options) {
  const bool plain = output.num_labels == 1 && output.hidden.empty();
  for (std::int64_t l = 0; l < output.num_labels; ++l) {
    const std::string head = "head." + std::to_string(l);
    Mlp hidden(layout, head, in, output.hidden, inner(options));
    const std::int64_t width = hidden.out();
    const std::string last = plain ? name : head + "." + std::to_string(output.hidden.size());
    heads_.push_back({.hidden = std::move(hidden),
                      .logit = Linear(layout, last, width, 1, /*relu=*/false, Initial::kGlorot),
                      .output = layout.add_scratch(output.hidden.empty() ? 0 : width),
                      .doutput = layout.add_scratch(output.hidden.empty() ? 0 : width)});
    layout.set_output_bias(l, heads_.back().logit.bias());
  }
  if (output.num_labels > 1) dx_ = layout.add_scratch(in);
}

void Heads::forward(Pass& pass, ConstJoined x, Matrix logits) const {
  for (std::size_t l = 0; l < heads_.size(); ++l) {
    const Head& head = heads_[l];
    const Matrix logit = logits.columns(static_cast<std::int64_t>(l), 1);
    if (head.hidden.empty()) {
      head.logit.forward(pass, x, logit);
      continue;
    }
    head.hidden.forward(pass, x, pass.scratch(head.output));
    head.logit.forward(pass, pass.scratch(head.output), logit);
  }
}

std::string Heads::write(Script& script, const std::string& x) const {
  std::string logits;
  for (const Head& head : heads_) {
    const std::string logit = head.logit.write(script, head.hidden.write(script, x));
    logits += (logits.empty() ? "" : ", ") + logit;
  }
  return heads_.size() == 1 ? logits : script.let("torch.cat([" + logits + "], 1)");
}

void Heads::backward(Pass& pass, ConstJoined x, Matrix dlogits, Joined dx) const {
  for (std::size_t l = heads_.size(); l-- > 0;) {
    const bool first = l + 1 == heads_.size();
    const Joined of_head = first ? dx : split_as(x, pass.scratch(dx_));
    backward(pass, heads_[l], x, dlogits.columns(static_cast<std::int64_t>(l), 1), of_head);
    if (first) continue;
    add_wanted(of_head.left, dx.left);
    add_wanted(of_head.right, dx.right);
  }
}

void Heads::backward(Pass& pass, const Head& head, ConstJoined x, Matrix dlogit, Joined dx) const {
  if (head.hidden.empty()) return head.logit.backward(pass, x, ConstMatrix(), dlogit, dx);
  const Matrix output = pass.scratch(head.output), doutput = pass.scratch(head.doutput);
  head.logit.backward(pass, output, ConstMatrix(), dlogit, doutput);
  head.hidden.backward(pass, x, output, doutput, dx);
}

Top::Top(Layout& layout,
         const std::string& name,
         std::int64_t in,
         const std::vector<std::int64_t>& widths,
         const Output& output,
         MlpOptions options)
    : shared_(layout, name, in, widths, inner(options)),
      heads_(layout, name + "." + std::to_string(widths.size()), shared_.out(), output, options),
      output_(layout.add_scratch(widths.empty() ? 0 : shared_.out())),
      doutput_(layout.add_scratch(widths.empty() ? 0 : shared_.out())) {}

void Top::forward(Pass& pass, ConstJoined x, Matrix logits) const {
  if (shared_.empty()) return heads_.forward(pass, x, logits);
  shared_.forward(pass, x, pass.scratch(output_));
  heads_.forward(pass, pass.scratch(output_), logits);
}

std::string Top::write(Script& script, const std::string& x) const {
  return heads_.write(script, shared_.write(script, x));
}

void Top::backward(Pass& pass, ConstJoined x, Matrix dlogits, Joined dx) const {
  if (shared_.empty()) return heads_.backward(pass, x, dlogits, dx);
  const Matrix output = pass.scratch(output_), doutput = pass.scratch(doutput_);
  heads_.backward(pass, output, dlogits, doutput);
  shared_.backward(pass, x, output, doutput, dx);
}

}  // namespace satrap::dense
