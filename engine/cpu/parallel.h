// Loops of ours on the cores that a stream lends to its task.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace arbalest::engine::cpu {

// Calls body(part) for part in [0, parts), consecutive parts on one of at most `threads` threads; for one thread
// without a parallel region.
template <typename Body>
void for_each_part(int threads, std::int64_t parts, const Body& body) {
  if (threads <= 1) {
    for (std::int64_t part = 0; part < parts; ++part) body(part);
    return;
  }
  // What OpenMP orders anyway at the begin and at the end, in terms that ThreadSanitizer sees: libgomp hides its
  // futexes.
  std::atomic<std::int64_t> ended;
  ended.store(0, std::memory_order_release);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::int64_t part = 0; part < parts; ++part) {
    ended.load(std::memory_order_acquire);
    body(part);
    ended.fetch_add(1, std::memory_order_release);
  }
  ended.load(std::memory_order_acquire);
}

// Calls body(begin, end) for equal ranges of [0, count), one for each thread, cut at multiples of a cache line of
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
