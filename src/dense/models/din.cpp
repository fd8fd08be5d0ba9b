#include <algorithm>
#include <numeric>
#include <utility>

#include "satrap/core/error.h"
#include "src/dense/heads.h"
#include "src/dense/layers.h"
#include "src/dense/model.h"
#include "src/dense/ops.h"

namespace satrap::dense {
namespace {

struct Columns {
  std::int64_t first, count;
};

Matrix part(Matrix m, Columns c) { return m.columns(c.first, c.count); }
ConstMatrix part(ConstMatrix m, Columns c) { return m.columns(c.first, c.count); }
std::string part(Script& script, const std::string& name, Columns c) {
  return script.slice(name, 1, c.first, c.count);
}

/// The inputs of one attention.
struct Place {
  std::string name;     // of the features
  Columns query, keys;  // of the pooled input
  Columns mask;         // of the numeric input
};

/// The weight a_i that a query gives each element of a sequence, and the weighted sum:
///   a_i = relu MLP of [q, k_i, q - k_i, q * k_i],   v = sum of a_i k_i
/// There is no softmax, as in the paper: a stronger interest gives a longer v. Only the elements go
/// through the MLP, not the padding; an empty sequence gives zeros.
class Attention {
 public:
  Attention(const job::ModelConfig& config, Place place, std::size_t number, Layout& layout)
      : place_(std::move(place)),
        unit_(layout,
              "attention." + std::to_string(number),
              4 * place_.query.count,
              append(config.attention, 1),
              {.relu_last = false, .inputs_per_row = place_.mask.count}),
        pairs_(layout.add_scratch(unit_.in() * place_.mask.count)),
        dpairs_(layout.add_scratch(unit_.in() * place_.mask.count)),
        scores_(layout.add_scratch(place_.mask.count)),
        dscores_(layout.add_scratch(place_.mask.count)) {}

  const Place& place() const { return place_; }
  std::int64_t width() const { return place_.query.count; }

  void forward(Pass& pass, const ModelInput& input, Matrix v) const {
    const ConstMatrix query = part(input.pooled, place_.query);
    const ConstMatrix keys = part(input.pooled, place_.keys);
    const ConstMatrix mask = part(input.numeric, place_.mask);
    const std::int64_t n = num_elements(mask);
    const Matrix pairs = first_rows(pass, pairs_, n, unit_.in());
    const Matrix scores = first_rows(pass, scores_, n, 1);
    attention_pairs(query, keys, mask, pairs);
    unit_.forward(pass, pairs, scores);
    attention_sum(keys, mask, scores, v);
  }

  std::string write(Script& script) const {
    const std::int64_t length = place_.mask.count;
    const std::string keys =
        script.reshape(part(script, script.pooled(), place_.keys), {length, place_.query.count});
    const std::string query = script.repeat(part(script, script.pooled(), place_.query), length);
    const std::string difference = script.subtract(query, keys);
    const std::string product = script.multiply(query, keys);
    const std::string scores =
        unit_.write(script, script.join({query, keys, difference, product}, 2));
    const std::string mask =
        script.reshape(part(script, script.numeric(), place_.mask), {length, 1});
    return script.sum(script.multiply(script.multiply(scores, mask), keys), 1);
  }

  /// Adds to `dpooled`.
  void backward(Pass& pass, const ModelInput& input, ConstMatrix dv, Matrix dpooled) const {
    const ConstMatrix query = part(input.pooled, place_.query);
    const ConstMatrix keys = part(input.pooled, place_.keys);
    const ConstMatrix mask = part(input.numeric, place_.mask);
    const Matrix dquery = part(dpooled, place_.query), dkeys = part(dpooled, place_.keys);
    const std::int64_t n = num_elements(mask);
    const Matrix pairs = first_rows(pass, pairs_, n, unit_.in());
    const Matrix dpairs = first_rows(pass, dpairs_, n, unit_.in());
    const Matrix scores = first_rows(pass, scores_, n, 1);
    const Matrix dscores = first_rows(pass, dscores_, n, 1);
    attention_sum_backward(keys, mask, scores, dv, dscores, dkeys);
    unit_.backward(pass, pairs, scores, dscores, dpairs);
    attention_pairs_backward(query, keys, mask, dpairs, dquery, dkeys);
  }

 private:
  // Scratch with a row per position of every sequence, viewed as one row per element.
  static Matrix first_rows(Pass& pass, ScratchId id, std::int64_t rows, std::int64_t cols) {
    return {pass.scratch(id).data, rows, cols};
  }

  Place place_;
  Mlp unit_;
  ScratchId pairs_, dpairs_, scores_, dscores_;
};

/// Deep Interest Network (Zhou et al. 2018, arXiv:1706.06978):
///   logits = relu MLP of [numeric, embeddings, v of every attention]
/// where attended sequences and their masks are not among the numeric input and the embeddings.
class Din : public Model {
 public:
  Din(const job::ModelConfig& config,
      const InputShape& shape,
      const std::vector<Place>& places,
      Layout& layout) {
    std::vector<Columns> masks, keys;
    for (const Place& place : places) {
      attentions_.emplace_back(config, place, attentions_.size(), layout);
      masks.push_back(place.mask);
      keys.push_back(place.keys);
    }
    numeric_ = without(shape.num_numeric, masks);
    pooled_ = without(shape.pooled_width(), keys);
    std::int64_t width = 0;
    for (const Columns& c : numeric_) width += c.count;
    for (const Columns& c : pooled_) width += c.count;
    for (const Attention& attention : attentions_) width += attention.width();
    top_.emplace(layout, "top", width, config.top,
                 Output{shape.num_labels(), config.head, config.heads, shape.num_classes},
                 MlpOptions{.dropout = config.dropout});
    x_ = layout.add_scratch(width);
    dx_ = layout.add_scratch(width);
  }

  void forward(Pass& pass, const ModelInput& input, Matrix logits) const override {
    const Matrix x = pass.scratch(x_);
    std::int64_t at = 0;  // column of x
    for (const Columns& c : numeric_) copy(part(input.numeric, c), part(x, next(at, c.count)));
    for (const Columns& c : pooled_) copy(part(input.pooled, c), part(x, next(at, c.count)));
    for (const Attention& attention : attentions_) {
      attention.forward(pass, input, part(x, next(at, attention.width())));
    }
    top_->forward(pass, x, logits);
  }

  std::string write(Script& script) const override {
    std::vector<std::string> inputs;
    for (const Columns& c : numeric_) inputs.push_back(part(script, script.numeric(), c));
    for (const Columns& c : pooled_) inputs.push_back(part(script, script.pooled(), c));
    for (const Attention& attention : attentions_) inputs.push_back(attention.write(script));
    return top_->write(script, script.join(inputs, 1));
  }

  void backward(Pass& pass,
                const ModelInput& input,
                Matrix dlogits,
                Matrix dpooled) const override {
    const Matrix dx = pass.scratch(dx_);
    top_->backward(pass, pass.scratch(x_), dlogits, dx);
    fill(dpooled, 0.0F);
    std::int64_t at = 0;
    for (const Columns& c : numeric_) next(at, c.count);
    for (const Columns& c : pooled_) copy(part(dx, next(at, c.count)), part(dpooled, c));
    at = dx.cols;
    for (std::size_t i = attentions_.size(); i-- > 0;) {
      at -= attentions_[i].width();
      attentions_[i].backward(pass, input, dx.columns(at, attentions_[i].width()), dpooled);
    }
  }

 private:
  static Columns next(std::int64_t& at, std::int64_t count) {
    return {std::exchange(at, at + count), count};
  }

  // The columns of [0, total) that are not in `taken`, whose entries may repeat but not overlap
  // otherwise.
  static std::vector<Columns> without(std::int64_t total, std::vector<Columns> taken) {
    std::ranges::sort(taken, {}, &Columns::first);
    taken.push_back({total, 0});
    std::vector<Columns> left;
    std::int64_t at = 0;
    for (const Columns& c : taken) {
      if (c.first > at) left.push_back({at, c.first - at});
      at = c.first + c.count;
    }
    return left;
  }

  std::vector<Attention> attentions_;
  std::vector<Columns> numeric_, pooled_;  // that go into the top as they are
  std::optional<Top> top_;
  ScratchId x_ = 0, dx_ = 0;
};

/// Finds the features that `model.attend` names among the fields.
class Places {
 public:
  explicit Places(const InputShape& shape) : shape_(shape) {}

  Place find(const job::AttendConfig& attend, const std::string& path) const {
    const InputShape::Sequence& sequence = sequence_of(attend.sequence, path + ".sequence");
    const Columns query = query_of(attend.query, path + ".query");
    const std::int64_t width = shape_.field_widths[index(sequence.first_field)];
    if (width != query.count) {
      refuse(path + ".query", concat("'", attend.query, "' is ", query.count,
                                     " wide, an element of '", attend.sequence, "' ", width,
                                     ": they need tables of one dim, or a shared one"));
    }
    return {.name = attend.sequence + "." + attend.query,
            .query = query,
            .keys = {column_of(sequence.first_field), sequence.length * width},
            .mask = {sequence.mask_column, sequence.length}};
  }

 private:
  [[noreturn]] static void refuse(const std::string& path, const std::string& reason) {
    throw Error(ErrorCode::kInvalidConfig, concat(path, ": ", reason));
  }
  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

  std::int64_t column_of(std::int64_t field) const {
    const auto begin = shape_.field_widths.begin();
    return std::accumulate(begin, begin + field, std::int64_t{0});
  }

  std::int64_t field_of(const std::string& feature, const std::string& path) const {
    const auto it = std::ranges::find(shape_.field_names, feature);
    if (it != shape_.field_names.end()) return it - shape_.field_names.begin();
    const std::string guess = nearest(feature, shape_.field_names);
    refuse(path, concat("no feature '", feature, "'",
                        guess.empty() ? "" : concat("; did you mean '", guess, "'?")));
  }

  const InputShape::Sequence* find_sequence(std::int64_t field) const {
    const auto it = std::ranges::find(shape_.sequences, field, &InputShape::Sequence::first_field);
    return it == shape_.sequences.end() ? nullptr : &*it;
  }

  const InputShape::Sequence& sequence_of(const std::string& feature,
                                          const std::string& path) const {
    const InputShape::Sequence* sequence = find_sequence(field_of(feature, path));
    if (sequence == nullptr) {
      refuse(path, concat("'", feature, "' is pooled into one vector; it needs features.", feature,
                          ".pooling: sequence"));
    }
    return *sequence;
  }

  Columns query_of(const std::string& feature, const std::string& path) const {
    const std::int64_t field = field_of(feature, path);
    if (find_sequence(field) != nullptr) {
      refuse(path, concat("'", feature, "' is a sequence; a query is one vector, such as of ",
                          "pooling: sum"));
    }
    return {column_of(field), shape_.field_widths[index(field)]};
  }

  const InputShape& shape_;
};

}  // namespace

std::unique_ptr<Model> make_din(const job::ModelConfig& config,
                                const InputShape& shape,
                                Layout& layout) {
  std::vector<Place> places;
  for (std::size_t i = 0; i < config.attend.size(); ++i) {
    const std::string path = concat("model.attend.", i);
    Place place = Places(shape).find(config.attend[i], path);
    if (std::ranges::find(places, place.name, &Place::name) != places.end()) {
      throw Error(ErrorCode::kInvalidConfig,
                  concat(path, ": '", config.attend[i].query, "' attends to '",
                         config.attend[i].sequence, "' already"));
    }
    places.push_back(std::move(place));
  }
  return std::make_unique<Din>(config, shape, places, layout);
}

}  // namespace satrap::dense
