// One copy of the model's flat vectors on a device.
#pragma once

#include <cstdint>

#include "engine/buffer.h"
#include "engine/device.h"

namespace arbalest::learners {

class Replica {
 public:
  // What one takes of the device's memory.
  static std::size_t device_bytes(std::int64_t elements) { return 3 * bytes(elements); }

  // Vectors of `elements` float32 each, zero. Throws kOutOfMemory.
  Replica(engine::Device& device, std::int64_t elements)
      : weights_(device.allocate(bytes(elements))),
        gradient_(device.allocate(bytes(elements))),
        momentum_(device.allocate(bytes(elements))) {}

  float* weights() const noexcept { return weights_.as<float>(); }
  float* gradient() const noexcept { return gradient_.as<float>(); }
  float* momentum() const noexcept { return momentum_.as<float>(); }

 private:
  static std::size_t bytes(std::int64_t elements) { return static_cast<std::size_t>(elements) * sizeof(float); }

  engine::Buffer weights_;
  engine::Buffer gradient_;
  engine::Buffer momentum_;
};

}  // namespace arbalest::learners
