#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "satrap/data/batch.h"
#include "satrap/data/schema.h"

namespace satrap::trainer {

/// Finds the inputs of the model whose value is the same in all examples: nothing can be learned
/// from them. Looks only at those that have not changed yet. One thread.
class ConstantInputs {
 public:
  explicit ConstantInputs(const data::Schema& schema);

  void add(const data::Batch& batch);

  /// Numbers before features, in the order of the schema; empty if there was no example.
  std::vector<std::string> names() const;

 private:
  struct Number {
    std::string name;
    std::int64_t column;  // of Batch::numeric
    float value = 0.0F;
  };
  struct Feature {
    std::string name;
    std::int64_t number;  // in the schema
    std::vector<std::uint64_t> bag = {};
  };

  void begin(const data::Batch& batch);
  static bool changes(const Number& number, const data::Batch& batch);
  static bool changes(const Feature& feature, const data::Batch& batch);

  std::vector<Number> numbers_;
  std::vector<Feature> features_;
  bool has_begun_ = false;
};

}  // namespace satrap::trainer
