// Whether this is a build with a sanitizer. The sanitizer's own memory is resident, too: shadow of all touched memory,
// and recently freed blocks. malloc then does not report what is allocated.
#pragma once

#include <cstdint>

namespace arbalest::tests {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// Whether a case with so many operations of its plain reference is left out, because a sanitizer makes it slow. Small
// cases of the same operator find the same mistakes.
constexpr bool is_too_long(std::int64_t operations) { return kSanitized && operations > 1'000'000; }

}  // namespace arbalest::tests
