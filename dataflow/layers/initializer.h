// Initial values of a parameter. For one initializer and fan they depend only on the seed, the parameter's index and
// the element's position, not on device, layout or thread count.
#pragma once

#include <cstdint>
#include <span>

namespace arbalest::dataflow {

struct Initializer {
  enum class Kind {
    kConstant,  // every element is `value`
    kUniform,   // uniform in [low, high)
    kGaussian,  // normal with `mean` and `stddev`
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

// fan_in and fan_out as in PyTorch: (channels / groups) * taps and (filters / groups) * taps. An embedding uses its
// width for both.
struct Fan {
  std::int64_t in = 1;
  std::int64_t out = 1;
};

// Fills a whole parameter in canonical order. `parameter`: its index in the model.
void initialize(const Initializer& initializer, const Fan& fan, std::uint64_t seed, std::uint32_t parameter,
                std::span<float> values);

}  // namespace arbalest::dataflow
