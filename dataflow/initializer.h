// Initial values of a parameter. They depend on (seed, parameter, element) only, not on device, layout or thread count.
#pragma once

#include <cstdint>
#include <span>

namespace arbalest::dataflow {

struct Initializer {
  enum class Kind {
    kConstant,  // value
    kUniform,   // [low, high)
    kGaussian,  // mean, stddev
    kXavier,    // uniform in +-sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010)
    kHe,        // Gaussian with stddev sqrt(2 / fan_in) (He et al., 2015)
  };
  Kind kind = Kind::kConstant;
  float value = 0.0F;
  float low = 0.0F;
  float high = 0.0F;
  float mean = 0.0F;
  float stddev = 0.0F;
};

// `in`: how many inputs reach one output element through the parameter. `out`: how many outputs one input reaches.
struct Fan {
  std::int64_t in = 1;
  std::int64_t out = 1;
};

// Fills `values`, which are in canonical order.
void initialize(const Initializer& initializer, const Fan& fan, std::uint64_t seed, std::uint32_t parameter,
                std::span<float> values);

}  // namespace arbalest::dataflow
