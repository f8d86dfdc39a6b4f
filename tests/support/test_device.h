// For tests that are compiled once for every kind of device.
#pragma once

#include <string_view>

namespace arbalest::tests {

// Of the device that the test is compiled for.
inline bool is_gpu(std::string_view device) { return device.starts_with("cuda"); }

// From here on that device is there, or the test ends as skipped. Before anything uses it; each program has its own.
void use_test_device();

}  // namespace arbalest::tests
