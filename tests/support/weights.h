// Reads and compares the weights of a training rig.
#pragma once

#include <cstring>
#include <vector>

#include "tests/support/training_rig.h"

namespace arbalest::tests {

// Returns the flat weights of every learner, running statistics included. Only for CPU devices.
inline std::vector<std::vector<float>> learner_weights(TrainingRig& rig) {
  std::vector<std::vector<float>> weights;
  for (const auto& pool : rig.pools()) {
    const auto elements = static_cast<std::size_t>(pool->training_plan().parameters().elements());
    for (const auto& learner : pool->learners()) {
      weights.emplace_back(learner->weights(), learner->weights() + elements);
    }
  }
  return weights;
}

// Returns the values of all tensors, one tensor after the other.
inline std::vector<float> flat(const std::vector<dataflow::NamedTensor>& tensors) {
  std::vector<float> values;
  for (const auto& tensor : tensors) values.insert(values.end(), tensor.values.begin(), tensor.values.end());
  return values;
}

inline std::vector<float> model_weights(TrainingRig& rig) { return flat(rig.scheduler().snapshot()); }

inline bool same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Compares the first `elements` elements.
inline bool same_bytes(const std::vector<float>& a, const std::vector<float>& b, std::size_t elements) {
  return a.size() >= elements && b.size() >= elements && std::memcmp(a.data(), b.data(), elements * sizeof(float)) == 0;
}

}  // namespace arbalest::tests
