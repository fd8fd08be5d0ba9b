#include "src/dense/experts.h"

#include <algorithm>
#include <utility>

#include "src/dense/joined.h"
#include "src/dense/ops.h"

namespace satrap::dense {

Experts::Experts(Layout& layout,
                 std::int64_t in,
                 std::int64_t num_labels,
                 const job::HeadsConfig& config,
                 const MlpOptions& options)
    : num_labels_(num_labels),
      num_shared_(config.experts),
      num_own_(config.type == job::HeadsType::kPle ? config.experts_per_label : 0),
      width_(config.layers.back()) {
  for (std::int64_t level = 0; level < config.levels; ++level) {
    const bool is_last = level + 1 == config.levels;
    add_level(layout, level == 0 ? in : width_, is_last, config, options);
  }
  const auto widest = [&](ScratchId Level::* part) {
    return layout.scratch()[levels_.front().*part].cols;  // the last level may have one gate less
  };
  doutputs_ = layout.add_scratch(widest(&Level::outputs));
  dweights_ = layout.add_scratch(widest(&Level::weights));
  dinput_ = layout.add_scratch(config.levels == 1 ? in : std::max(in, width_));
}

void Experts::add_level(Layout& layout,
                        std::int64_t in,
                        bool is_last,
                        const job::HeadsConfig& config,
                        const MlpOptions& options) {
  const std::string number = std::to_string(levels_.size());
  Level level;
  const auto add = [&](const std::string& owner, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::string name = "experts." + number + "." + owner + "." + std::to_string(i);
      level.experts.emplace_back(layout, name, in, config.layers, options);
    }
  };
  const auto label = [](std::int64_t l) { return "label." + std::to_string(l); };
  add("shared", num_shared_);
  for (std::int64_t l = 0; l < num_labels_; ++l) add(label(l), num_own_);

  const Owner num_gates = is_last ? num_labels_ : num_labels_ + 1;
  std::int64_t num_weights = 0;
  for (Owner gate = 0; gate < num_gates; ++gate) {
    const Weighed weighed = weighed_by(gate);
    const std::int64_t count = weighed.num_first + weighed.num_own;
    const std::string owner = gate == num_labels_ ? "shared" : label(gate);
    level.gates.emplace_back(layout, "gate." + number + "." + owner, in, count, /*relu=*/false);
    num_weights += count;
  }
  level.outputs = layout.add_scratch(std::ssize(level.experts) * width_);
  level.weights = layout.add_scratch(num_weights);
  level.mixed = layout.add_scratch(num_gates * width_);
  level.dmixed = layout.add_scratch(num_gates * width_);
  levels_.push_back(std::move(level));
}

Experts::Owner Experts::owner_of_expert(std::size_t expert) const {
  const auto e = static_cast<std::int64_t>(expert);
  return e < num_shared_ ? num_labels_ : (e - num_shared_) / num_own_;
}

Experts::Weighed Experts::weighed_by(Owner gate) const {
  if (gate == num_labels_) return {num_shared_ + num_labels_ * num_own_, 0, 0};
  return {num_shared_, num_shared_ + gate * num_own_, num_own_};
}

Matrix Experts::of_gate(Matrix weights, Owner gate) const {
  const Weighed weighed = weighed_by(gate);
  return weights.columns(gate * (num_shared_ + num_own_), weighed.num_first + weighed.num_own);
}

Matrix Experts::of_experts(Matrix vectors, std::int64_t first, std::int64_t count) const {
  return vectors.columns(first * width_, count * width_);
}

ConstJoined Experts::input(Pass& pass, std::size_t level, Owner owner, ConstJoined x) const {
  if (level == 0) return x;
  return of_experts(pass.scratch(levels_[level - 1].mixed), owner, 1);
}

Joined Experts::dinput(Pass& pass, std::size_t level, Owner owner, Joined dx) const {
  if (level == 0) return dx;
  return of_experts(pass.scratch(levels_[level - 1].dmixed), owner, 1);
}

ConstMatrix Experts::output(Pass& pass, std::int64_t label) const {
  return of_experts(pass.scratch(levels_.back().mixed), label, 1);
}

Matrix Experts::doutput(Pass& pass, std::int64_t label) const {
  return of_experts(pass.scratch(levels_.back().dmixed), label, 1);
}

void Experts::forward(Pass& pass, ConstJoined x) const {
  for (std::size_t i = 0; i < levels_.size(); ++i) {
    const Level& level = levels_[i];
    const Matrix outputs = pass.scratch(level.outputs);
    for (std::size_t e = 0; e < level.experts.size(); ++e) {
      level.experts[e].forward(pass, input(pass, i, owner_of_expert(e), x),
                               of_experts(outputs, static_cast<std::int64_t>(e), 1));
    }
    for (Owner gate = 0; gate < std::ssize(level.gates); ++gate) {
      const auto [num_first, first_own, num_own] = weighed_by(gate);
      const Matrix weights = of_gate(pass.scratch(level.weights), gate);
      const Matrix mixed = of_experts(pass.scratch(level.mixed), gate, 1);
      level.gates[static_cast<std::size_t>(gate)].forward(pass, input(pass, i, gate, x), weights);
      softmax(weights);
      mix(weights.columns(0, num_first), of_experts(outputs, 0, num_first), mixed, /*add=*/false);
      mix(weights.columns(num_first, num_own), of_experts(outputs, first_own, num_own), mixed,
          /*add=*/true);
    }
  }
}

/// The gradients of the experts' outputs and of the gates' linear layers.
void Experts::mix_backward_of(Pass& pass, const Level& level) const {
  const Matrix outputs = pass.scratch(level.outputs), doutputs = pass.scratch(doutputs_);
  fill(doutputs, 0.0F);
  for (Owner gate = std::ssize(level.gates); gate-- > 0;) {
    const auto [num_first, first_own, num_own] = weighed_by(gate);
    const Matrix weights = of_gate(pass.scratch(level.weights), gate);
    const Matrix dweights = of_gate(pass.scratch(dweights_), gate);
    const Matrix dmixed = of_experts(pass.scratch(level.dmixed), gate, 1);
    mix_backward(weights.columns(0, num_first), of_experts(outputs, 0, num_first), dmixed,
                 dweights.columns(0, num_first), of_experts(doutputs, 0, num_first));
    mix_backward(weights.columns(num_first, num_own), of_experts(outputs, first_own, num_own),
                 dmixed, dweights.columns(num_first, num_own),
                 of_experts(doutputs, first_own, num_own));
    softmax_backward(weights, dweights);
  }
}

void Experts::backward(Pass& pass, std::size_t number, ConstJoined x, Joined dx) const {
  const Level& level = levels_[number];
  mix_backward_of(pass, level);
  if (number == 0) {
    fill(dx.left, 0.0F);
    fill(dx.right, 0.0F);
  } else {
    fill(pass.scratch(levels_[number - 1].dmixed), 0.0F);
  }
  const auto add_input = [&](Owner owner, const auto& backward_from) {
    const ConstJoined in = input(pass, number, owner, x);
    add_gradient(in, pass.scratch(dinput_), dinput(pass, number, owner, dx),
                 [&](Joined din) { backward_from(in, din); });
  };
  for (Owner gate = std::ssize(level.gates); gate-- > 0;) {
    add_input(gate, [&](ConstJoined in, Joined din) {
      level.gates[static_cast<std::size_t>(gate)].backward(
          pass, in, ConstMatrix(), of_gate(pass.scratch(dweights_), gate), din);
    });
  }
  for (std::size_t e = level.experts.size(); e-- > 0;) {
    const auto place = static_cast<std::int64_t>(e);
    add_input(owner_of_expert(e), [&](ConstJoined in, Joined din) {
      level.experts[e].backward(pass, in, of_experts(pass.scratch(level.outputs), place, 1),
                                of_experts(pass.scratch(doutputs_), place, 1), din);
    });
  }
}

void Experts::backward(Pass& pass, ConstJoined x, Joined dx) const {
  for (std::size_t level = levels_.size(); level-- > 0;) backward(pass, level, x, dx);
}

std::vector<std::string> Experts::write(Script& script, const std::string& x) const {
  std::vector<std::string> inputs(static_cast<std::size_t>(num_labels_ + 1), x);
  for (const Level& level : levels_) {
    std::vector<std::string> outputs, mixed;
    for (std::size_t e = 0; e < level.experts.size(); ++e) {
      const std::string& in = inputs[static_cast<std::size_t>(owner_of_expert(e))];
      outputs.push_back(level.experts[e].write(script, in));
    }
    for (Owner gate = 0; gate < std::ssize(level.gates); ++gate) {
      const auto g = static_cast<std::size_t>(gate);
      const std::string logits = level.gates[g].write(script, inputs[g]);
      const std::string weights = script.softmax(logits);
      const auto [num_first, first_own, num_own] = weighed_by(gate);
      std::string sum;
      for (std::int64_t i = 0; i < num_first + num_own; ++i) {
        const std::int64_t expert = i < num_first ? i : first_own + i - num_first;
        const std::string term = script.multiply(script.slice(weights, 1, i, 1),
                                                 outputs[static_cast<std::size_t>(expert)]);
        sum = sum.empty() ? term : script.add(sum, term);
      }
      mixed.push_back(sum);
    }
    inputs = std::move(mixed);
  }
  return inputs;
}

}  // namespace satrap::dense
