#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "satrap/data/synthetic.h"
#include "src/data/passes/role_passes.h"

namespace satrap::data {

/// Passes over generated rows: those of evaluation follow those of training.
class GeneratedPasses final : public RolePasses {
 public:
  GeneratedPasses(const Dataset& data, Rows rows);

  std::int64_t num_rows() const override;
  std::string no_rows_message() const override;

 private:
  std::unique_ptr<RowBlockSource> open_limited(const Schema& schema,
                                               const RowPass& pass) const override;

  const std::shared_ptr<const SyntheticGenerator> generator_;
  const std::int64_t offset_, num_rows_;
};

}  // namespace satrap::data
