#pragma once

#include <string>
#include <utility>

#include <arrow/result.h>
#include <arrow/status.h>

#include "src/data/http/http_client.h"

namespace satrap::data {

/// Throws a StoreFailure if it is not OK.
void throw_failure(const arrow::Status& status);

/// Throws a StoreFailure if there is no value.
template <class Value>
Value value_of(arrow::Result<Value> result) {
  throw_failure(result.status());
  return std::move(result).ValueUnsafe();
}

/// Throws the StoreFailure of an answer that is not the one hoped for.
[[noreturn]] void throw_s3_failure(const HttpAnswer& answer);

}  // namespace satrap::data
