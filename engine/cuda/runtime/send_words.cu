#include "engine/cuda/runtime/send_words.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "engine/base/error.h"
#include "engine/cuda/runtime/launch.h"

namespace arbalest::engine::cuda {

namespace {

// Size of the small variant. It holds the parameters of a step and the indices of a mini-batch of 32 to 57 examples.
// For these the host copies far fewer bytes.
constexpr std::uint32_t kFewWords = 128;
constexpr std::uint32_t kMostWords = kMostSentBytes / sizeof(std::uint32_t);

template <std::uint32_t capacity>
struct Words {
  std::uint32_t values[capacity];
};

// Launched with one block.
template <std::uint32_t capacity>
__device__ void store_words(const Words<capacity>& words, std::uint32_t* to, std::uint32_t count) {
  for (std::uint32_t i = threadIdx.x; i < count; i += kThreads) to[i] = words.values[i];
}

template <std::uint32_t capacity>
void send(std::uint32_t* to, const std::byte* from, std::uint32_t count, cudaStream_t stream) {
  Words<capacity> words{};
  std::memcpy(words.values, from, count * sizeof(std::uint32_t));
  launch<store_words<capacity>>(1, {stream}, words, to, count);
}

}  // namespace

void send_words(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  ARBALEST_CHECK(bytes % sizeof(std::uint32_t) == 0);
  auto* target = static_cast<std::uint32_t*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  for (std::size_t left = bytes / sizeof(std::uint32_t); left > 0;) {
    const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(left, kMostWords));
    const auto run = count <= kFewWords ? send<kFewWords> : send<kMostWords>;
    run(target, source, count, stream);
    target += count;
    source += count * sizeof(std::uint32_t);
    left -= count;
  }
}

}  // namespace arbalest::engine::cuda
