#include "satrap/dense/dense_network.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "src/dense/gradient_sum.h"
#include "src/dense/model.h"
#include "src/dense/ops.h"
#include "src/dense/optimizer.h"
#include "src/dense/reduce.h"
#include "src/dense/torchscript.h"

namespace satrap::dense {
namespace {

class Network : public DenseNetwork {
 public:
  Network(const job::ModelConfig& model,
          const job::DenseOptimizerConfig& optimizer,
          Precision precision,
          const InputShape& shape,
          std::uint64_t seed,
          ThreadPool& pool)
      : shape_(shape),
        pooled_width_(shape.pooled_width()),
        num_labels_(shape.num_labels()),
        optimizer_config_(optimizer),
        precision_(precision),
        dropout_seed_(hash64(seed, 0xD50)),
        pool_(pool) {
    if (model.type == "torchscript" && precision == Precision::kBf16) {
      throw Error(ErrorCode::kInvalidConfig,
                  "train.precision: bf16 does not go with model 'torchscript', which computes as "
                  "its module says");
    }
    logits_ = layout_.add_scratch(num_labels_);
    dlogits_ = layout_.add_scratch(num_labels_);
    model_ = make_model(model, shape, layout_);
    parameters_ = AlignedBuffer(layout_.num_parameters());
    buffers_ = AlignedBuffer(layout_.num_buffer_values());
    next_buffers_ = AlignedBuffer(layout_.num_buffer_values());
    gradient_ = std::make_unique<GradientSum>(layout_.num_parameters());
    layout_.initialize(seed, parameters_.span(), buffers_.span());
    optimizer_ = std::make_unique<Optimizer>(optimizer, layout_.num_parameters());
  }

  DenseResult forward_backward(const DenseInput& input,
                               std::span<float> probabilities,
                               std::span<float> grad_pooled,
                               const OnGradient& on_gradient) override;
  void apply(std::int64_t step) override;
  TrainingState training_state() override {
    return {parameters_.span(), optimizer_->first(), optimizer_->second(),
            optimizer_->num_updates()};
  }
  float gradient_scale() override;
  double learning_rate(std::int64_t step) const override;
  void predict(const DenseInput& input, std::span<float> probabilities) override;

  std::span<float> gradient() override { return gradient_->values(); }
  std::int64_t num_parameters() const override { return layout_.num_parameters(); }
  std::vector<NamedTensor> state() override;
  std::string to_torchscript() override {
    return dense::to_torchscript(*model_, layout_, parameters_.span(), buffers_.span());
  }

 private:
  // What one lane adds to the result.
  struct Lane {
    std::unique_ptr<Pass> pass;
    double loss = 0.0;
    bool finite = true;
  };

  void check_shapes(const DenseInput& input, std::size_t num_probabilities) const;
  std::int64_t prepare_lanes(std::int64_t num_examples, bool whole_batch);
  // Rows that are computed at once.
  struct Piece {
    std::int64_t first, count;
    std::int64_t lane;
    bool is_first, is_last;  // of its lane
  };
  // Calls run(lane, piece) for every piece, lanes in parallel.
  template <class Run>
  void for_each_piece(std::int64_t num_examples, bool whole_batch, const Run& run);
  ModelInput rows_of(const DenseInput& input, std::int64_t first, std::int64_t count) const;

  const InputShape shape_;
  const std::int64_t pooled_width_;
  const std::int64_t num_labels_;
  const job::DenseOptimizerConfig optimizer_config_;
  const Precision precision_;
  const std::uint64_t dropout_seed_;
  ThreadPool& pool_;
  Layout layout_;
  ScratchId logits_, dlogits_;
  std::unique_ptr<Model> model_;
  AlignedBuffer parameters_, buffers_;
  std::unique_ptr<GradientSum> gradient_;
  AlignedBuffer next_buffers_;  // of the last forward_backward, if it is applied
  std::unique_ptr<Optimizer> optimizer_;
  std::int64_t lane_rows_ = 0;  // most rows of a piece the lanes have room for
  std::vector<Lane> lanes_;
};

void Network::check_shapes(const DenseInput& input, std::size_t num_probabilities) const {
  const auto rows = static_cast<std::size_t>(input.num_examples);
  SATRAP_CHECK(input.num_examples >= 0, "num_examples is ", input.num_examples);
  SATRAP_CHECK(input.numeric.size() == rows * static_cast<std::size_t>(shape_.num_numeric),
               "numeric input: ", rows, " rows of ", shape_.num_numeric, " wanted, got ",
               input.numeric.size(), " values");
  SATRAP_CHECK(input.pooled.size() == rows * static_cast<std::size_t>(pooled_width_),
               "pooled input: ", rows, " rows of ", pooled_width_, " wanted, got ",
               input.pooled.size(), " values");
  const std::size_t wanted = rows * static_cast<std::size_t>(num_labels_);
  SATRAP_CHECK(num_probabilities == wanted, "probabilities: ", wanted, " wanted, got ",
               num_probabilities);
}

// Makes room for the pieces of the batch and returns the number of lanes.
std::int64_t Network::prepare_lanes(std::int64_t num_examples, bool whole_batch) {
  const std::int64_t piece_rows =
      whole_batch ? num_examples : std::min(num_examples, kPieceExamples);
  const std::int64_t num_lanes =
      whole_batch ? 1 : std::min(kMaxLanes, (num_examples + kPieceExamples - 1) / kPieceExamples);
  if (piece_rows > lane_rows_) {
    lanes_.clear();
    lane_rows_ = piece_rows;
  }
  while (std::ssize(lanes_) < num_lanes) {
    lanes_.emplace_back().pass = std::make_unique<Pass>(layout_, parameters_.data(),
                                                        buffers_.data(), lane_rows_, precision_);
  }
  return num_lanes;
}

template <class Run>
void Network::for_each_piece(std::int64_t num_examples, bool whole_batch, const Run& run) {
  const std::int64_t num_lanes = prepare_lanes(num_examples, whole_batch);
  if (whole_batch) {
    use_one_thread();
    lanes_[0].pass->gemm().set_pool(&pool_);
    run(lanes_[0], Piece{0, num_examples, 0, true, true});
    lanes_[0].pass->gemm().set_pool(nullptr);
    return;
  }
  const std::int64_t num_pieces = (num_examples + kPieceExamples - 1) / kPieceExamples;
  pool_.parallel_for(num_lanes, [&](std::int64_t lane) {
    use_one_thread();
    const std::int64_t begin = num_pieces * lane / num_lanes;
    const std::int64_t end = num_pieces * (lane + 1) / num_lanes;
    for (std::int64_t piece = begin; piece < end; ++piece) {
      const std::int64_t first = piece * kPieceExamples;
      run(lanes_[static_cast<std::size_t>(lane)],
          Piece{first, std::min(kPieceExamples, num_examples - first), lane, piece == begin,
                piece + 1 == end});
    }
  });
}

ModelInput Network::rows_of(const DenseInput& input, std::int64_t first, std::int64_t count) const {
  return {.numeric = {input.numeric.data() + first * shape_.num_numeric, count, shape_.num_numeric},
          .pooled = {input.pooled.data() + first * pooled_width_, count, pooled_width_}};
}

DenseResult Network::forward_backward(const DenseInput& input,
                                      std::span<float> probabilities,
                                      std::span<float> grad_pooled,
                                      const OnGradient& on_gradient) {
  check_shapes(input, probabilities.size());
  const std::int64_t loss_examples =
      input.loss_examples > 0 ? input.loss_examples : input.num_examples;
  SATRAP_CHECK(loss_examples > 0, "a batch without rows has no mean loss");
  SATRAP_CHECK(input.labels.size() == probabilities.size(), "labels: ", probabilities.size(),
               " wanted, got ", input.labels.size());
  SATRAP_CHECK(grad_pooled.size() == input.pooled.size(), "grad_pooled: ", input.pooled.size(),
               " values wanted, got ", grad_pooled.size());
  if (input.num_examples == 0) {
    std::ranges::fill(gradient_->values(), 0.0F);
    std::ranges::copy(buffers_.span(), next_buffers_.data());
    return {};
  }
  const bool whole_batch = model_->needs_whole_batch();
  const auto num_lanes = static_cast<std::size_t>(prepare_lanes(input.num_examples, whole_batch));
  const auto lanes = std::span(lanes_).first(num_lanes);
  std::array<const float*, kMaxLanes> gradients{};
  for (std::size_t i = 0; i < num_lanes; ++i) gradients[i] = lanes[i].pass->gradients().data();
  gradient_->begin(std::span(gradients).first(num_lanes), on_gradient);

  const float factor = 1.0F / static_cast<float>(loss_examples);
  const std::uint64_t dropout_seed = hash64(dropout_seed_, static_cast<std::uint64_t>(input.step));
  for_each_piece(input.num_examples, whole_batch, [&](Lane& lane, const Piece& piece) {
    Pass& pass = *lane.pass;
    pass.begin({.first_example = input.first_example + piece.first,
                .num_examples = piece.count,
                .training = true,
                .accumulate = !piece.is_first,
                .dropout_seed = dropout_seed,
                .sum = gradient_->is_told() && piece.is_last ? gradient_.get() : nullptr,
                .lane = piece.lane});
    const ModelInput rows = rows_of(input, piece.first, piece.count);
    const Matrix logits = pass.scratch(logits_), dlogits = pass.scratch(dlogits_);
    const Matrix dpooled(grad_pooled.data() + piece.first * pooled_width_, piece.count,
                         pooled_width_);
    model_->forward(pass, rows, logits);
    const std::int64_t first_label = piece.first * num_labels_;
    const double loss =
        binary_cross_entropy(logits, input.labels.data() + first_label, shape_.label_weights.data(),
                             factor, probabilities.data() + first_label, dlogits);
    model_->backward(pass, rows, dlogits, dpooled);
    lane.loss = loss + (piece.is_first ? 0.0 : lane.loss);
    lane.finite = all_finite(dpooled) && (piece.is_first || lane.finite);
  });

  DenseResult result;
  for (const Lane& lane : lanes) {
    result.loss += lane.loss;
    result.finite = result.finite && lane.finite;
  }
  result.loss /= static_cast<double>(input.num_examples);
  result.grad_norm = std::sqrt(gradient_->finish(pool_));
  result.finite = result.finite && std::isfinite(result.loss) && std::isfinite(result.grad_norm);
  std::ranges::copy(lanes_[0].pass->new_buffers().span(), next_buffers_.data());
  return result;
}

float Network::gradient_scale() {
  if (optimizer_config_.clip_norm <= 0.0) return 1.0F;
  // As torch.nn.utils.clip_grad_norm_. The gradient may have been averaged with others' since.
  const double norm = std::sqrt(sum_of_squares(gradient_->values(), pool_));
  return static_cast<float>(std::min(1.0, optimizer_config_.clip_norm / (norm + 1e-6)));
}

double Network::learning_rate(std::int64_t step) const {
  return optimizer_config_.lr * optimizer_config_.schedule.factor(step);
}

void Network::apply(std::int64_t step) {
  optimizer_->apply(parameters_.span(), gradient_->values(), gradient_scale(), learning_rate(step),
                    pool_);
  std::ranges::copy(next_buffers_.span(), buffers_.data());
}

void Network::predict(const DenseInput& input, std::span<float> probabilities) {
  check_shapes(input, probabilities.size());
  if (input.num_examples == 0) return;
  for_each_piece(input.num_examples, /*whole_batch=*/false, [&](Lane& lane, const Piece& piece) {
    lane.pass->begin({.first_example = piece.first, .num_examples = piece.count});
    const Matrix logits = lane.pass->scratch(logits_);
    model_->forward(*lane.pass, rows_of(input, piece.first, piece.count), logits);
    sigmoid(logits, probabilities.data() + piece.first * num_labels_);
  });
}

std::vector<DenseNetwork::NamedTensor> Network::state() {
  std::vector<NamedTensor> state;
  for (const Parameter& p : layout_.parameters()) {
    state.push_back(
        {p.name, p.shape, {parameters_.data() + p.offset, static_cast<std::size_t>(p.size())}});
  }
  for (const Buffer& b : layout_.buffers()) {
    state.push_back(
        {b.name, {b.size}, {buffers_.data() + b.offset, static_cast<std::size_t>(b.size)}});
  }
  for (const Optimizer::State& s : optimizer_->state()) {
    state.push_back({s.name, {std::ssize(s.values)}, s.values});
  }
  return state;
}

}  // namespace

std::unique_ptr<DenseNetwork> DenseNetwork::create(const job::ModelConfig& model,
                                                   const job::DenseOptimizerConfig& optimizer,
                                                   Precision precision,
                                                   const InputShape& shape,
                                                   std::uint64_t seed,
                                                   ThreadPool& pool) {
  model.validate();
  optimizer.validate();
  return std::make_unique<Network>(model, optimizer, precision, shape, seed, pool);
}

}  // namespace satrap::dense
