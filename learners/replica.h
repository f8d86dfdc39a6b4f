// One copy of the model's flat vectors on a device.
#pragma once

#include <cstdint>

#include "engine/bfloat16.h"
#include "engine/buffer.h"
#include "engine/device.h"

namespace arbalest::learners {

class Replica {
 public:
  // What one takes of the device's memory.
  static std::size_t device_bytes(std::int64_t elements, bool low_precision) {
    return 3 * bytes(elements) + (low_precision ? rounded_bytes(elements) : 0);
  }

  // Vectors of `elements` float32 each, zero; and of as many bfloat16, if `low_precision`. Throws kOutOfMemory.
  Replica(engine::Device& device, std::int64_t elements, bool low_precision)
      : weights_(device.allocate(bytes(elements))),
        gradient_(device.allocate(bytes(elements))),
        momentum_(device.allocate(bytes(elements))),
        rounded_(low_precision ? device.allocate(rounded_bytes(elements)) : engine::Buffer()) {}

  float* weights() const noexcept { return weights_.as<float>(); }
  float* gradient() const noexcept { return gradient_.as<float>(); }
  float* momentum() const noexcept { return momentum_.as<float>(); }
  // The weights in low precision, for whoever has written the weights to keep up to date; null: there is none.
  engine::BFloat16* rounded() const noexcept { return rounded_.as<engine::BFloat16>(); }

 private:
  static std::size_t bytes(std::int64_t elements) { return static_cast<std::size_t>(elements) * sizeof(float); }
  static std::size_t rounded_bytes(std::int64_t elements) {
    return static_cast<std::size_t>(elements) * sizeof(engine::BFloat16);
  }

  engine::Buffer weights_;
  engine::Buffer gradient_;
  engine::Buffer momentum_;
  engine::Buffer rounded_;
};

}  // namespace arbalest::learners
