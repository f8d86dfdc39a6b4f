// Trains the small network on a device while its number of learners changes.
#pragma once

#include <string>
#include <vector>

#include "tests/support/small_training.h"

namespace arbalest::tests {

inline const std::vector<std::vector<int>> kSizes = {{3}, {1}, {4}, {2}, {1}};

inline RigOptions resizable_on(const std::string& device) {
  RigOptions options = options_on({device}, {1});
  options.most_learners = 4;
  options.synchronization.momentum = 0.7F;
  options.moving_average_epochs = 0.5;
  return options;
}

// Trains three rounds with each number of learners.
inline Trained train_through(TrainingRig& rig, const std::vector<std::vector<int>>& sizes) {
  Trained trained;
  for (const std::vector<int>& size : sizes) {
    rig.resize(size);
    trained.loss += rig.run(3).sums.loss();
  }
  trained.evaluation = rig.scheduler().evaluate(rig.test_ring());
  trained.weights = model_weights(rig);
  return trained;
}

inline Trained train_through(const RigOptions& options, const std::vector<std::vector<int>>& sizes) {
  TrainingRig rig(options);
  return train_through(rig, sizes);
}

}  // namespace arbalest::tests
