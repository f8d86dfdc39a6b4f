// Whether this is a build with a sanitizer. The sanitizer's own memory is resident, too: shadow of all touched memory,
// and recently freed blocks. malloc then does not report what is allocated.
#pragma once

namespace arbalest::tests {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace arbalest::tests
