// Tells ThreadSanitizer about work that is handed over inside libraries that were built without it (libgomp, oneTBB).
#pragma once

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace arbalest::engine {

// Everything before publish_to_sanitizer(object) in one thread happens before everything after
// receive_from_sanitizer(object) in another. Without ThreadSanitizer the functions are empty.
inline void publish_to_sanitizer([[maybe_unused]] const void* object) {
#if defined(__SANITIZE_THREAD__)
  __tsan_release(const_cast<void*>(object));
#endif
}

inline void receive_from_sanitizer([[maybe_unused]] const void* object) {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(const_cast<void*>(object));
#endif
}

}  // namespace arbalest::engine
