// Random numbers that depend on a key only: the same on every machine, compiler and standard library, in any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace arbalest::dataflow {

inline constexpr std::uint64_t kSplitMixIncrement = 0x9E3779B97F4A7C15U;

// SplitMix64's step followed by its output function. The function is a bijection.
constexpr std::uint64_t split_mix(std::uint64_t z) noexcept {
  z += kSplitMixIncrement;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014): the i-th number is a hash of
// the key plus i times an odd constant.
class RandomSequence {
 public:
  // Different (seed, stream, index) give unrelated sequences.
  RandomSequence(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) noexcept
      : state_(split_mix(split_mix(split_mix(seed) + stream) + index)) {}

  std::uint64_t next() noexcept {
    state_ += kSplitMixIncrement;
    return split_mix(state_);
  }

  // Uniform in [0, bound), for bound in [1, 2^32], without bias: products that would favor some values are rejected
  // (Lemire: "Fast random integer generation in an interval", 2019).
  std::uint64_t below(std::uint64_t bound) noexcept {
    const std::uint64_t threshold = (kWordRange - bound) % bound;
    for (;;) {
      const std::uint64_t product = (next() >> 32U) * bound;
      if ((product & (kWordRange - 1)) >= threshold) return product >> 32U;
    }
  }

 private:
  static constexpr std::uint64_t kWordRange = std::uint64_t{1} << 32U;

  std::uint64_t state_;
};

// Shuffles by Fisher and Yates' method. `values`: at most 2^32.
template <typename T>
void shuffle(std::span<T> values, RandomSequence& random) {
  for (std::size_t left = values.size(); left > 1; --left) {
    std::swap(values[left - 1], values[random.below(left)]);
  }
}

}  // namespace arbalest::dataflow
