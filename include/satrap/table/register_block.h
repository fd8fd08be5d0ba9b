#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace satrap::table {

/// Makes whole pages that hold rows readable where they are, for a device that the table does not
/// know, until what it returns is destroyed; null if that is not possible. Called by any thread.
using RegisterBlock = std::function<std::shared_ptr<void>(std::byte* pages, std::int64_t bytes)>;

}  // namespace satrap::table
