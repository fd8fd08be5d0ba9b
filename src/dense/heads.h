#pragma once

#include <optional>
#include <string>
#include <vector>

#include "satrap/job/model_config.h"
#include "src/dense/experts.h"
#include "src/dense/layers.h"
#include "src/dense/matrix.h"
#include "src/dense/parameters.h"
#include "src/dense/pass.h"
#include "src/dense/script.h"

namespace satrap::dense {

/// The output of a network: a logit per label, each with hidden layers of its own, or one for each
/// class of the only label.
struct Output {
  std::int64_t num_labels = 1;
  std::vector<std::int64_t> hidden = {};  // widths
  job::HeadsConfig heads = {};            // what each head reads
  std::int64_t num_classes = 0;           // 0: there are none
};

/// Logits [rows, num_labels] from a vector that the labels share: label l has an MLP `head.<l>` of
/// [hidden..., 1]. It reads the vector, or what Experts make of it for the label. One label without
/// hidden layers is the linear layer `name`. The only head of classes has a logit for each.
///
/// Dropout applies to every hidden layer of a head and of an expert, including the last, with draws
/// of its own. It does not apply to x, whose producer drops out of it, for all labels alike (Top
/// does).
///
/// Logits are summed in fp32 whatever the precision, with one label or several; those of classes
/// are a product like that of other layers. The weights of the
/// logits start in Glorot's range, about 2.4 times that of other layers (bench/journal/tried.md
/// says what it gains).
class Heads {
 public:
  Heads(Layout& layout,
        const std::string& name,
        std::int64_t in,
        const Output& output,
        MlpOptions options);

  void forward(Pass& pass, ConstJoined x, Matrix logits) const;
  std::string write(Script& script, const std::string& x) const;
  /// `dlogits` may be changed; dx is overwritten.
  void backward(Pass& pass, ConstJoined x, Matrix dlogits, Joined dx) const;

 private:
  struct Head {
    Mlp hidden;  // may be empty
    Linear logit;
    ScratchId output, doutput;  // of `hidden`
  };
  void backward(Pass& pass, const Head& head, ConstJoined x, Matrix dlogit, Joined dx) const;

  std::int64_t width_;  // of each head
  std::optional<Experts> experts_;
  std::vector<Head> heads_;
  ScratchId dx_ = 0;  // of one head, if several read x
};

/// MLP `name`, which the labels share, followed by their heads. Dropout follows every layer of the
/// MLP, the same for all labels, and every hidden layer of a head. With one label without hidden
/// layers it is one MLP of [widths..., 1], whose last layer is linear.
class Top {
 public:
  /// Uses the `options` that hold for every layer: ReLU and dropout.
  Top(Layout& layout,
      const std::string& name,
      std::int64_t in,
      const std::vector<std::int64_t>& widths,
      const Output& output,
      MlpOptions options);

  std::int64_t in() const { return shared_.in(); }

  void forward(Pass& pass, ConstJoined x, Matrix logits) const;
  std::string write(Script& script, const std::string& x) const;
  void backward(Pass& pass, ConstJoined x, Matrix dlogits, Joined dx) const;

 private:
  Mlp shared_;  // may be empty
  Heads heads_;
  ScratchId output_, doutput_;  // of `shared_`
};

}  // namespace satrap::dense
