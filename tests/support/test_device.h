// Helpers for tests that are compiled once for every kind of device.
#pragma once

#include <string_view>
#include <vector>

#include "engine/base/precision.h"

namespace arbalest::tests {

// Whether the device that the test is compiled for is a GPU.
inline bool is_gpu(std::string_view device) { return device.starts_with("cuda"); }

// Precisions other than float32 that this kind of device supports.
inline std::vector<engine::Precision> precisions_beside_float32(std::string_view device) {
  if (!is_gpu(device)) return {engine::Precision::kBFloat16};
  return {engine::Precision::kTensorFloat32, engine::Precision::kBFloat16};
}

// Ends the test as skipped unless the device exists. Call it before anything uses the device. Each test program defines
// its own version.
void use_test_device();

}  // namespace arbalest::tests
