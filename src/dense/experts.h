#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "satrap/job/model_config.h"
#include "src/dense/layers.h"
#include "src/dense/matrix.h"
#include "src/dense/parameters.h"
#include "src/dense/pass.h"
#include "src/dense/script.h"

namespace satrap::dense {

/// Makes a vector of each label's own out of the one that the labels share. An expert is an MLP. A
/// gate weighs experts by the softmax of a linear layer, and gives their weighted sum.
///
/// MMoE (Ma et al. 2018, doi 10.1145/3219819.3220007): all labels share all experts, and each has a
/// gate. PLE (Tang et al. 2020, doi 10.1145/3383313.3412236): a label's gate weighs the shared
/// experts and the label's own. With several levels, in each but the last a further gate weighs all
/// experts. In the next level a label's experts and gate read what its gate gave, the shared ones
/// what the further gate gave.
///
/// Parameters: `experts.<level>.shared.<i>`, `experts.<level>.label.<l>.<i>`,
/// `gate.<level>.label.<l>`, `gate.<level>.shared`. Layers start as nn.Linear.
class Experts {
 public:
  /// `config` has experts. `options` hold for every layer of an expert, the last one too.
  Experts(Layout& layout,
          std::int64_t in,
          std::int64_t num_labels,
          const job::HeadsConfig& config,
          const MlpOptions& options);

  std::int64_t out() const { return width_; }

  void forward(Pass& pass, ConstJoined x) const;
  /// After forward: the label's vector [rows, out()], and where its gradient goes.
  ConstMatrix output(Pass& pass, std::int64_t label) const;
  Matrix doutput(Pass& pass, std::int64_t label) const;
  /// After the gradient of every label's vector was written. dx is overwritten.
  void backward(Pass& pass, ConstJoined x, Joined dx) const;

  /// The vectors of the labels.
  std::vector<std::string> write(Script& script, const std::string& x) const;

 private:
  /// Owner of an input and of experts: a label, or, with the number of labels, all of them.
  using Owner = std::int64_t;

  struct Level {
    std::vector<Mlp> experts;   // the shared ones, then those of each label
    std::vector<Linear> gates;  // of each owner; in the last level, of each label
    ScratchId outputs;          // of the experts, side by side
    ScratchId weights;          // of the gates, side by side
    ScratchId mixed, dmixed;    // by the gates, side by side
  };
  void add_level(Layout& layout,
                 std::int64_t in,
                 bool is_last,
                 const job::HeadsConfig& config,
                 const MlpOptions& options);

  Owner owner_of_expert(std::size_t expert) const;
  /// The experts that a gate weighs: the first ones, then `num_own` from `first_own` on.
  struct Weighed {
    std::int64_t num_first, first_own, num_own;
  };
  Weighed weighed_by(Owner gate) const;
  Matrix of_gate(Matrix weights, Owner gate) const;
  Matrix of_experts(Matrix vectors, std::int64_t first, std::int64_t count) const;
  ConstJoined input(Pass& pass, std::size_t level, Owner owner, ConstJoined x) const;
  Joined dinput(Pass& pass, std::size_t level, Owner owner, Joined dx) const;
  void mix_backward_of(Pass& pass, const Level& level) const;
  void backward(Pass& pass, std::size_t level, ConstJoined x, Joined dx) const;

  std::int64_t num_labels_, num_shared_, num_own_, width_;
  std::vector<Level> levels_;
  ScratchId doutputs_, dweights_, dinput_;  // of the level at work
};

}  // namespace satrap::dense
