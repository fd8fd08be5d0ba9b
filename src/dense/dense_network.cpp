#include "satrap/dense/dense_network.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "src/dense/dense_state.h"
#include "src/dense/gemm.h"
#include "src/dense/gradient_sum.h"
#include "src/dense/graph_network.h"
#include "src/dense/losses.h"
#include "src/dense/model.h"
#include "src/dense/onnx.h"
#include "src/dense/ops.h"
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
        num_outputs_(shape.num_outputs()),
        losses_(shape),
        optimizer_config_(optimizer),
        precision_(precision),
        dropout_seed_(hash64(seed, 0xD50)),
        pool_(pool) {
    const Gemm fails_at_the_start(precision);  // if something is missing, not with the first batch
    logits_ = layout_.add_scratch(num_outputs_);
    dlogits_ = layout_.add_scratch(num_outputs_);
    model_ = make_model(model, shape, layout_);
    state_ = std::make_unique<DenseState>(layout_, optimizer, seed);
    next_buffers_ = AlignedBuffer(layout_.num_buffer_values());
    gradient_ = std::make_unique<GradientSum>(layout_.num_parameters());
  }

  void forward_backward(const DenseInput& input,
                        const DenseOutput& output,
                        const OnGradient& on_gradient) override;
  DenseResult finish() override { return result_; }
  void copy_flag(float* to, Place) override { *to = flag(); }
  void apply(std::int64_t step) override;
  TrainingState save_training_state() override { return state_->save_training_state(); }
  void load_training_state(const TrainingState& state) override {
    state_->load_training_state(state);
  }
  void load_parameters(std::span<const float> values) override { state_->load_parameters(values); }
  float gradient_scale() override {
    return clipping_factor(gradient_->values(), optimizer_config_.clip_norm, pool_);
  }
  double learning_rate(std::int64_t step) const override;
  void set_base_rates(std::span<const double> rates) override {
    state_->set_output_constants(losses_.constants_of(rates));
  }
  void predict(const DenseInput& input, const FloatMatrix& probabilities) override;

  std::span<float> gradient() override { return gradient_->values(); }
  std::span<float> flag_and_first_bucket() override { return gradient_->flag_and_first_bucket(); }
  std::int64_t num_parameters() const override { return layout_.num_parameters(); }
  std::int64_t num_outputs() const override { return num_outputs_; }
  State save() override { return state_->save(); }
  void load(const State& state) override { state_->load(state); }
  std::string to_onnx() override {
    return dense::to_onnx(*model_, shape_, layout_, state_->parameters.span(),
                          state_->buffers.span());
  }
  std::string to_torchscript() override {
    return dense::to_torchscript(*model_, layout_, state_->parameters.span(),
                                 state_->buffers.span());
  }

 private:
  // The contribution of one replica to the result.
  struct Replica {
    std::unique_ptr<Pass> pass;
    double loss = 0.0;
    bool finite = true;
  };

  // A batch in host memory.
  struct Examples {
    ConstMatrix numeric, pooled;
    const float* labels = nullptr;   // [num_examples, num_labels]
    ConstMatrix weights = {};        // the same
    float* probabilities = nullptr;  // [num_examples, num_outputs]
    Matrix grad_pooled;
  };
  Examples examples_of(const DenseInput& input, const FloatMatrix& probabilities) const;
  std::int64_t prepare_replicas(std::int64_t num_examples, bool whole_batch);
  // Examples that are computed together.
  struct Piece {
    std::int64_t first, count;
    std::int64_t replica;
    bool is_first, is_last;  // of its replica
  };
  // Calls run(replica, piece) for every piece, replicas in parallel.
  template <class Run>
  void for_each_piece(std::int64_t num_examples, bool whole_batch, const Run& run);
  static ModelInput part(const Examples& examples, const Piece& piece) {
    return {.numeric = examples.numeric.row_range(piece.first, piece.count),
            .pooled = examples.pooled.row_range(piece.first, piece.count)};
  }

  const InputShape shape_;
  const std::int64_t pooled_width_;
  const std::int64_t num_labels_, num_outputs_;
  const Losses losses_;
  const job::DenseOptimizerConfig optimizer_config_;
  const Precision precision_;
  const std::uint64_t dropout_seed_;
  ThreadPool& pool_;
  Layout layout_;
  ScratchId logits_, dlogits_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<DenseState> state_;
  std::unique_ptr<GradientSum> gradient_;
  AlignedBuffer next_buffers_;         // of the last forward_backward, if it is applied
  std::int64_t replica_examples_ = 0;  // size of a piece that the replicas have room for
  DenseResult result_;                 // of the last forward_backward
  std::vector<Replica> replicas_;
};

Network::Examples Network::examples_of(const DenseInput& input,
                                       const FloatMatrix& probabilities) const {
  const std::int64_t n = input.num_examples;
  SATRAP_CHECK(n >= 0, "num_examples is ", n);
  SATRAP_CHECK(n == 0 || probabilities.stride == num_outputs_, "probabilities with stride ",
               probabilities.stride);
  const auto matrix = [&](const ConstFloatMatrix& m, std::int64_t cols, const char* what) {
    return ConstMatrix(host_values(m, n, cols, what), n, cols, m.stride);
  };
  return {.numeric = matrix(input.numeric, shape_.num_numeric, "numeric input"),
          .pooled = matrix(input.pooled, pooled_width_, "pooled input"),
          .labels = nullptr,
          .probabilities = host_values(probabilities, n, num_outputs_, "probabilities"),
          .grad_pooled = {}};
}

// Makes room for the pieces of the batch and returns the number of replicas.
std::int64_t Network::prepare_replicas(std::int64_t num_examples, bool whole_batch) {
  const std::int64_t piece_rows =
      whole_batch ? num_examples : std::min(num_examples, kPieceExamples);
  const std::int64_t num_replicas =
      whole_batch ? 1
                  : std::min(kMaxReplicas, (num_examples + kPieceExamples - 1) / kPieceExamples);
  if (piece_rows > replica_examples_) {
    replicas_.clear();
    replica_examples_ = piece_rows;
  }
  while (std::ssize(replicas_) < num_replicas) {
    replicas_.emplace_back().pass = std::make_unique<Pass>(
        layout_, state_->parameters.data(), state_->buffers.data(), replica_examples_, precision_);
  }
  return num_replicas;
}

template <class Run>
void Network::for_each_piece(std::int64_t num_examples, bool whole_batch, const Run& run) {
  const std::int64_t num_replicas = prepare_replicas(num_examples, whole_batch);
  if (whole_batch) {
    replicas_[0].pass->gemm().set_pool(&pool_);
    run(replicas_[0], Piece{0, num_examples, 0, true, true});
    replicas_[0].pass->gemm().set_pool(nullptr);
    return;
  }
  const std::int64_t num_pieces = (num_examples + kPieceExamples - 1) / kPieceExamples;
  pool_.parallel_for(num_replicas, [&](std::int64_t replica) {
    const std::int64_t begin = num_pieces * replica / num_replicas;
    const std::int64_t end = num_pieces * (replica + 1) / num_replicas;
    for (std::int64_t piece = begin; piece < end; ++piece) {
      const std::int64_t first = piece * kPieceExamples;
      run(replicas_[static_cast<std::size_t>(replica)],
          Piece{first, std::min(kPieceExamples, num_examples - first), replica, piece == begin,
                piece + 1 == end});
    }
  });
}

void Network::forward_backward(const DenseInput& input,
                               const DenseOutput& output,
                               const OnGradient& on_gradient) {
  Examples examples = examples_of(input, output.probabilities);
  const std::int64_t n = input.num_examples;
  const std::int64_t loss_examples = input.loss_examples > 0 ? input.loss_examples : n;
  SATRAP_CHECK(loss_examples > 0, "a batch without examples has no mean loss");
  SATRAP_CHECK(n == 0 || input.labels.stride == num_labels_, "labels with stride ",
               input.labels.stride);
  examples.labels = host_values(input.labels, n, num_labels_, "labels");
  examples.weights =
      input.weights.data == nullptr
          ? ConstMatrix(shape_.label_weights.data(), n, num_labels_, /*row_stride=*/0)
          : ConstMatrix(host_values(input.weights, n, num_labels_, "weights"), n, num_labels_,
                        input.weights.stride);
  examples.grad_pooled = {
      host_values(output.grad_pooled, n, pooled_width_, "gradient of pooled rows"), n,
      pooled_width_, output.grad_pooled.stride};
  result_ = {};
  std::ranges::fill(gradient_->flag_and_first_bucket().first(kFlagFloats), 0.0F);
  if (n == 0) {
    std::ranges::fill(gradient_->values(), 0.0F);
    std::ranges::copy(state_->buffers.span(), next_buffers_.data());
    return;
  }
  const bool whole_batch = model_->needs_whole_batch();
  const auto num_replicas = static_cast<std::size_t>(prepare_replicas(n, whole_batch));
  const auto replicas = std::span(replicas_).first(num_replicas);
  std::array<const float*, kMaxReplicas> gradients{};
  for (std::size_t i = 0; i < num_replicas; ++i)
    gradients[i] = replicas[i].pass->gradients().data();
  gradient_->begin(std::span(gradients).first(num_replicas), on_gradient);

  const float factor = 1.0F / static_cast<float>(loss_examples);
  const std::uint64_t dropout_seed = hash64(dropout_seed_, static_cast<std::uint64_t>(input.step));
  for_each_piece(n, whole_batch, [&](Replica& replica, const Piece& piece) {
    Pass& pass = *replica.pass;
    pass.begin({.first_example = input.first_example + piece.first,
                .num_examples = piece.count,
                .training = true,
                .accumulate = !piece.is_first,
                .dropout_seed = dropout_seed,
                .sum = gradient_->is_told() && piece.is_last ? gradient_.get() : nullptr,
                .replica = piece.replica});
    const ModelInput input_of_piece = part(examples, piece);
    const Matrix logits = pass.scratch(logits_), dlogits = pass.scratch(dlogits_);
    const Matrix dpooled = examples.grad_pooled.row_range(piece.first, piece.count);
    model_->forward(pass, input_of_piece, logits);
    const double loss =
        losses_.compute(logits, examples.labels + piece.first * num_labels_,
                        examples.weights.row_range(piece.first, piece.count), factor,
                        examples.probabilities + piece.first * num_outputs_, dlogits);
    model_->backward(pass, input_of_piece, dlogits, dpooled);
    replica.loss = loss + (piece.is_first ? 0.0 : replica.loss);
    replica.finite = all_finite(dpooled) && (piece.is_first || replica.finite);
  });

  for (const Replica& replica : replicas) {
    result_.loss += replica.loss;
    result_.finite = result_.finite && replica.finite;
  }
  result_.loss /= static_cast<double>(n);
  result_.grad_norm = std::sqrt(gradient_->finish(pool_));
  result_.finite =
      result_.finite && std::isfinite(result_.loss) && std::isfinite(result_.grad_norm);
  gradient_->flag_and_first_bucket()[0] = result_.finite ? 0.0F : 1.0F;
  std::ranges::copy(replicas_[0].pass->new_buffers().span(), next_buffers_.data());
}

double Network::learning_rate(std::int64_t step) const {
  return optimizer_config_.lr * optimizer_config_.schedule.factor(step);
}

void Network::apply(std::int64_t step) {
  result_.finite = flag() == 0.0F;
  if (!result_.finite) return;
  state_->optimizer.apply(state_->parameters.span(), gradient_->values(), gradient_scale(),
                          learning_rate(step), pool_);
  std::ranges::copy(next_buffers_.span(), state_->buffers.data());
}

void Network::predict(const DenseInput& input, const FloatMatrix& probabilities) {
  const Examples examples = examples_of(input, probabilities);
  if (input.num_examples == 0) return;
  for_each_piece(input.num_examples, /*whole_batch=*/false,
                 [&](Replica& replica, const Piece& piece) {
                   Pass& pass = *replica.pass;
                   pass.begin({.first_example = piece.first, .num_examples = piece.count});
                   const Matrix logits = pass.scratch(logits_);
                   model_->forward(pass, part(examples, piece), logits);
                   losses_.predict(logits, examples.probabilities + piece.first * num_outputs_);
                 });
}

/// Throws if the model, or what computes it, does not go with it.
void check_precision(Precision precision, const job::ModelConfig& model, const DensePlace* place) {
  const bool is_half = precision == Precision::kBf16 || precision == Precision::kFp16;
  if (is_half && model.type == job::ModelType::kTorchScript) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("train.precision: ", word_of(precision, job::kPrecisions),
                       " does not go with model 'torchscript', which computes as its module says"));
  }
  const bool is_graph = model.engine == job::Engine::kGraph || place != nullptr;
  if (precision == Precision::kFp16 && !is_graph) {
    throw Error(ErrorCode::kInvalidConfig,
                "train.precision: fp16 is for a network that libtorch computes; write fp32 or "
                "bf16, or model.engine: graph");
  }
  if (precision == Precision::kTf32 && (place == nullptr || place->device.is_host())) {
    throw Error(ErrorCode::kInvalidConfig,
                "train.precision: tf32 is a GPU's, and this network is computed on the CPU; write "
                "fp32 or bf16");
  }
}

}  // namespace

std::unique_ptr<DenseNetwork> DenseNetwork::create(const job::ModelConfig& model,
                                                   const job::DenseOptimizerConfig& optimizer,
                                                   Precision precision,
                                                   const InputShape& shape,
                                                   std::uint64_t seed,
                                                   ThreadPool& pool,
                                                   const DensePlace* place) {
  model.validate();
  optimizer.validate();
  check_precision(precision, model, place);
  if (model.engine == job::Engine::kGraph || place != nullptr) {
    return make_graph_network(model, optimizer, precision, shape, seed, pool, place);
  }
  return std::make_unique<Network>(model, optimizer, precision, shape, seed, pool);
}

std::string DenseNetwork::to_pt2() {
  throw Error(ErrorCode::kInvalidConfig,
              "--network: pt2 is written of a network in Python (model 'python') alone; write onnx "
              "or torchscript");
}

std::string DenseNetwork::to_safetensors() {
  throw Error(ErrorCode::kInternal, "SafeTensors of a network that is not in Python");
}

}  // namespace satrap::dense
