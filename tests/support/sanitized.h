// Whether this is a build with a sanitizer, whose own memory is resident, too: shadow of all that is touched, and what
// was freed a while ago. malloc then does not tell what is allocated.
#pragma once

namespace arbalest::tests {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace arbalest::tests
