// The sum of a learner's gradients since its last pull: what it pushes to a server every few mini-batches.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/buffer.h"
#include "engine/device.h"
#include "engine/passes/weight_update.h"

namespace arbalest::learners {

class GradientSum {
 public:
  static std::size_t device_bytes(std::int64_t trainable) {
    return static_cast<std::size_t>(trainable) * sizeof(float) + sizeof(engine::StepParameters);
  }

  // A sum of [trainable] elements, zero. Uses `stream`, of the device, and blocks the host. Throws kOutOfMemory.
  GradientSum(engine::Device& device, engine::Stream& stream, std::int64_t trainable);

  const float* values() const noexcept { return values_.as<float>(); }
  void enqueue_clear(engine::Stream& stream) const;
  // Enqueues sum <- sum + scale * gradient. scale: on the device; null: 1. If an element of the gradient is not finite,
  // or about to overflow, the sum stays, and *non_finite counts such elements.
  void enqueue_add(engine::Stream& stream, const float* gradient, const float* scale, std::int32_t* non_finite) const;

 private:
  std::int64_t trainable_;
  engine::Buffer values_;
  // A step of plain SGD with a learning rate of -1 adds the gradient without rounding its product.
  engine::Buffer host_step_;  // host: StepParameters, constant
  engine::Buffer step_;
  engine::UpdateRange range_;
};

}  // namespace arbalest::learners
