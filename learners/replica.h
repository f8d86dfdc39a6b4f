// A replica: one copy of the model's flat vectors on a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "dataflow/parameter_layout.h"
#include "engine/base/bfloat16.h"
#include "engine/base/update_rule.h"
#include "engine/device.h"
#include "learners/slab.h"

namespace arbalest::learners {

// A vector of the optimizer's state: [trainable_elements()].
struct StateSlot {
  std::string name;  // "momentum"
  float* values = nullptr;
};

struct Replica {
  float* weights = nullptr;  // [layout.elements()], as is the gradient
  float* gradient = nullptr;
  // The weights in low precision; code that writes the weights must update them. Null if there is no such copy.
  engine::BFloat16* rounded = nullptr;
  std::vector<StateSlot> state = {};  // in the order of engine::state_slots
};

// Enqueues that the copy in low precision follows the weights, if there is one.
inline void round_weights(engine::Stream& stream, const dataflow::ParameterLayout& layout, const Replica& replica) {
  if (replica.rounded == nullptr) return;
  stream.enqueue(engine::RoundWeights{replica.weights, replica.rounded, layout.elements()}, "round weights");
}

// The vectors of a team's replicas.
class ReplicaSlabs {
 public:
  // Memory of the device that one replica takes.
  static std::size_t device_bytes(const dataflow::ParameterLayout& layout, const engine::UpdateRule& rule,
                                  bool low_precision) {
    return 2 * Slab::stride(bytes(layout.elements())) +
           engine::state_slots(rule).size() * Slab::stride(bytes(layout.trainable_elements())) +
           (low_precision ? Slab::stride(rounded_bytes(layout.elements())) : 0);
  }

  // Allocates vectors of float32, all zero: weights and gradient with layout.elements(), optimizer state with
  // trainable_elements(). If `low_precision`, also a bfloat16 copy of layout.elements(). Throws kOutOfMemory.
  ReplicaSlabs(engine::Device& device, const dataflow::ParameterLayout& layout, const engine::UpdateRule& rule,
               bool low_precision, int replicas)
      : weights_(device, bytes(layout.elements()), replicas), gradient_(device, bytes(layout.elements()), replicas) {
    if (low_precision) rounded_ = Slab(device, rounded_bytes(layout.elements()), replicas);
    for (const std::string_view name : engine::state_slots(rule)) {
      names_.emplace_back(name);
      state_.emplace_back(device, bytes(layout.trainable_elements()), replicas);
    }
  }

  Replica of(int replica) const {
    Replica vectors{weights_.of<float>(replica), gradient_.of<float>(replica), rounded_.of<engine::BFloat16>(replica)};
    for (std::size_t slot = 0; slot < state_.size(); ++slot) {
      vectors.state.push_back({names_[slot], state_[slot].of<float>(replica)});
    }
    return vectors;
  }

  // Adds the regions of the slabs.
  void add_to(engine::ReplicaMemory& memory) const {
    for (const Slab* slab : {&weights_, &gradient_}) memory.regions.push_back(slab->region());
    if (rounded_.of<engine::BFloat16>(0) != nullptr) memory.regions.push_back(rounded_.region());
    for (const Slab& slab : state_) memory.regions.push_back(slab.region());
  }

 private:
  static std::size_t bytes(std::int64_t elements) { return static_cast<std::size_t>(elements) * sizeof(float); }
  static std::size_t rounded_bytes(std::int64_t elements) {
    return static_cast<std::size_t>(elements) * sizeof(engine::BFloat16);
  }

  Slab weights_;
  Slab gradient_;
  Slab rounded_;
  std::vector<std::string> names_;
  std::vector<Slab> state_;
};

}  // namespace arbalest::learners
