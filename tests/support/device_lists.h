// The sets of CPU devices on which a test of training runs.
#pragma once

#include <string>
#include <vector>

#include "engine/host/topology.h"
#include "tests/support/catch.h"
#include "tests/support/training_rig.h"

namespace arbalest::tests {

// Returns a list with one CPU device and a list with two disjoint ones. With a single core it warns and leaves out the
// second list.
inline std::vector<std::vector<std::string>> device_lists() {
  std::vector<std::vector<std::string>> lists = {{"cpu"}};
  const auto two = two_devices(engine::host::allowed_cores());
  if (two.empty()) {
    WARN("skipped: two devices, because they need two cores");
  } else {
    lists.push_back(two);
  }
  return lists;
}

// Spreads `learners` over one or two devices; the first device gets the odd one.
inline std::vector<int> spread(int learners, const std::vector<std::string>& devices) {
  if (devices.size() == 1) return {learners};
  return {learners - learners / 2, learners / 2};
}

}  // namespace arbalest::tests
