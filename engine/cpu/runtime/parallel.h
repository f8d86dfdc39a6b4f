// Our own parallel loops, on the cores that a stream gives to its task.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/host/thread_sanitizer.h"

namespace arbalest::engine::cpu {

// Calls body(part) for part in [0, parts), with consecutive parts on one of at most `threads` threads. One thread runs
// without a parallel region.
//
// ThreadSanitizer learns where the threads of a region start and end. It checks nothing else in this function, because
// the threads read OpenMP's copy of `body` before they can report their start. It checks all of `body`.
template <typename Body>
[[gnu::no_sanitize("thread")]] void for_each_part(int threads, std::int64_t parts, const Body& body) {
  if (threads <= 1) {
    for (std::int64_t part = 0; part < parts; ++part) body(part);
    return;
  }
  const char start = 0;  // two objects: a thread that ends must not be ordered before one that starts later
  const char end = 0;
  publish_to_sanitizer(&start);
#pragma omp parallel num_threads(threads)
  {
    receive_from_sanitizer(&start);
#pragma omp for schedule(static) nowait
    for (std::int64_t part = 0; part < parts; ++part) body(part);
    publish_to_sanitizer(&end);
  }
  receive_from_sanitizer(&end);
}

// Calls body(begin, end) for equal ranges of [0, count), one per thread, divided at multiples of a cache line of
// floats.
template <typename Body>
void for_ranges(int threads, std::int64_t count, const Body& body) {
  constexpr std::int64_t kLine = 16;
  const std::int64_t range = ((count + threads - 1) / threads + kLine - 1) / kLine * kLine;
  for_each_part(threads, threads, [&](std::int64_t part) {
    const std::int64_t begin = std::min(count, part * range);
    const std::int64_t end = std::min(count, begin + range);
    if (begin < end) body(begin, end);
  });
}

}  // namespace arbalest::engine::cpu
