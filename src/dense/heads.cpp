#include "src/dense/heads.h"

#include <algorithm>
#include <utility>

#include "src/dense/joined.h"

namespace satrap::dense {
namespace {

/// Options of layers that others follow: all layers are alike.
MlpOptions inner(MlpOptions options) {
  options.relu_last = options.relu;
  options.dropout_last = true;
  return options;
}

}  // namespace

Heads::Heads(Layout& layout,
             const std::string& name,
             std::int64_t in,
             const Output& output,
             MlpOptions options)
    : width_(std::max<std::int64_t>(1, output.num_classes)) {
  const bool plain = output.num_labels == 1 && output.hidden.empty();
  if (output.heads.has_experts()) {
    experts_.emplace(layout, in, output.num_labels, output.heads, inner(options));
    in = experts_->out();
  }
  for (std::int64_t l = 0; l < output.num_labels; ++l) {
    const std::string head = "head." + std::to_string(l);
    Mlp hidden(layout, head, in, output.hidden, inner(options));
    const std::int64_t width = hidden.out();
    const std::string last = plain ? name : head + "." + std::to_string(output.hidden.size());
    heads_.push_back(
        {.hidden = std::move(hidden),
         .logit = Linear(layout, last, width, width_, /*relu=*/false, Initial::kGlorot),
         .output = layout.add_scratch(output.hidden.empty() ? 0 : width),
         .doutput = layout.add_scratch(output.hidden.empty() ? 0 : width)});
    layout.set_output_bias(l, heads_.back().logit.bias());
  }
  if (output.num_labels > 1 && !experts_) dx_ = layout.add_scratch(in);
}

void Heads::forward(Pass& pass, ConstJoined x, Matrix logits) const {
  if (experts_) experts_->forward(pass, x);
  for (std::int64_t l = 0; l < std::ssize(heads_); ++l) {
    const Head& head = heads_[static_cast<std::size_t>(l)];
    const ConstJoined in = experts_ ? experts_->output(pass, l) : x;
    const Matrix logit = logits.columns(l * width_, width_);
    if (head.hidden.empty()) {
      head.logit.forward(pass, in, logit);
      continue;
    }
    head.hidden.forward(pass, in, pass.scratch(head.output));
    head.logit.forward(pass, pass.scratch(head.output), logit);
  }
}

std::string Heads::write(Script& script, const std::string& x) const {
  std::vector<std::string> inputs(heads_.size(), x), logits;
  if (experts_) inputs = experts_->write(script, x);
  for (std::size_t l = 0; l < heads_.size(); ++l) {
    const Head& head = heads_[l];
    logits.push_back(head.logit.write(script, head.hidden.write(script, inputs[l])));
  }
  return script.join(logits, 1);
}

void Heads::backward(Pass& pass, ConstJoined x, Matrix dlogits, Joined dx) const {
  for (std::int64_t l = std::ssize(heads_); l-- > 0;) {
    const Head& head = heads_[static_cast<std::size_t>(l)];
    const Matrix dlogit = dlogits.columns(l * width_, width_);
    if (experts_) {
      backward(pass, head, experts_->output(pass, l), dlogit, experts_->doutput(pass, l));
    } else if (l + 1 == std::ssize(heads_)) {
      backward(pass, head, x, dlogit, dx);
    } else {
      add_gradient(x, pass.scratch(dx_), dx,
                   [&](Joined of_head) { backward(pass, head, x, dlogit, of_head); });
    }
  }
  if (experts_) experts_->backward(pass, x, dx);
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
