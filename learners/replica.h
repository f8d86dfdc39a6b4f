// A replica: one copy of the model's flat vectors on a device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataflow/parameter_layout.h"
#include "engine/base/bfloat16.h"
#include "engine/base/update_rule.h"
#include "engine/buffer.h"
#include "engine/device.h"

namespace arbalest::learners {

// A vector of the optimizer's state: [trainable_elements()].
struct StateSlot {
  std::string name;  // "momentum"
  engine::Buffer values;
};

class Replica {
 public:
  // Memory of the device that one replica takes.
  static std::size_t device_bytes(const dataflow::ParameterLayout& layout, const engine::UpdateRule& rule,
                                  bool low_precision) {
    return 2 * bytes(layout.elements()) + engine::state_slots(rule).size() * bytes(layout.trainable_elements()) +
           (low_precision ? rounded_bytes(layout.elements()) : 0);
  }

  // Allocates vectors of float32, all zero: weights and gradient with layout.elements(), optimizer state with
  // trainable_elements(). If `low_precision`, also a bfloat16 copy of layout.elements(). Throws kOutOfMemory.
  Replica(engine::Device& device, const dataflow::ParameterLayout& layout, const engine::UpdateRule& rule,
          bool low_precision)
      : weights_(device.allocate(bytes(layout.elements()))),
        gradient_(device.allocate(bytes(layout.elements()))),
        rounded_(low_precision ? device.allocate(rounded_bytes(layout.elements())) : engine::Buffer()) {
    for (const std::string_view name : engine::state_slots(rule)) {
      state_.push_back({std::string(name), device.allocate(bytes(layout.trainable_elements()))});
    }
  }

  float* weights() const noexcept { return weights_.as<float>(); }
  float* gradient() const noexcept { return gradient_.as<float>(); }
  // Slots of the optimizer's state, in the order of engine::state_slots.
  const std::vector<StateSlot>& state() const noexcept { return state_; }
  // The weights in low precision; code that writes the weights must update them. Null if there is no such copy.
  engine::BFloat16* rounded() const noexcept { return rounded_.as<engine::BFloat16>(); }

 private:
  static std::size_t bytes(std::int64_t elements) { return static_cast<std::size_t>(elements) * sizeof(float); }
  static std::size_t rounded_bytes(std::int64_t elements) {
    return static_cast<std::size_t>(elements) * sizeof(engine::BFloat16);
  }

  engine::Buffer weights_;
  engine::Buffer gradient_;
  engine::Buffer rounded_;
  std::vector<StateSlot> state_;
};

}  // namespace arbalest::learners
