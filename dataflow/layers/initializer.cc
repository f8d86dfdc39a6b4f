#include "dataflow/layers/initializer.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "dataflow/input/batches/random_sequence.h"

namespace arbalest::dataflow {

namespace {

// Uniform in [0, 1) with 53 bits.
double uniform(RandomSequence& random) { return static_cast<double>(random.next() >> 11U) * 0x1.0p-53; }

void fill_uniform(RandomSequence& random, double low, double high, std::span<float> values) {
  for (float& value : values) value = static_cast<float>(low + (high - low) * uniform(random));
}

// Box and Muller (1958); only one number of each pair is used.
void fill_gaussian(RandomSequence& random, double mean, double stddev, std::span<float> values) {
  for (float& value : values) {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform(random)));
    value = static_cast<float>(mean + stddev * radius * std::cos(2.0 * std::numbers::pi * uniform(random)));
  }
}

}  // namespace

void initialize(const Initializer& initializer, const Fan& fan, std::uint64_t seed, std::uint32_t parameter,
                std::span<float> values) {
  constexpr std::uint64_t kStream = 0x57454947;  // keeps these numbers apart from the shuffles of the same seed
  RandomSequence random(seed, kStream, parameter);
  switch (initializer.kind) {
    case Initializer::Kind::kConstant: std::ranges::fill(values, initializer.value); return;
    case Initializer::Kind::kUniform: fill_uniform(random, initializer.low, initializer.high, values); return;
    case Initializer::Kind::kGaussian: fill_gaussian(random, initializer.mean, initializer.stddev, values); return;
    case Initializer::Kind::kXavier: {
      const double bound = std::sqrt(6.0 / static_cast<double>(fan.in + fan.out));
      fill_uniform(random, -bound, bound, values);
      return;
    }
    case Initializer::Kind::kHe:
      fill_gaussian(random, 0.0, std::sqrt(2.0 / static_cast<double>(fan.in)), values);
      return;
  }
}

}  // namespace arbalest::dataflow
