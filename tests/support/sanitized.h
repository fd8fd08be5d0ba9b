#pragma once

namespace satrap {

/// Whether a sanitizer watches this build, in which a test takes five to twenty times as long. What
/// is repeated to find a wrong result, which release does, is repeated less often there.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace satrap
