// Describes the program and this machine, for bug reports and scripts.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "engine/backends/cuda_devices.h"

namespace arbalest::cli {

nlohmann::ordered_json environment_report();
// Returns an array with one object per device: `gpus` and the CPU. Measures the CPU's speed in BF16 for a fraction of a
// second.
nlohmann::ordered_json device_report(const engine::CudaMachine& gpus);

// "key: value" lines; nested objects are indented, lists of plain values take one line.
std::string as_text(const nlohmann::ordered_json& report, int indentation = 0);

}  // namespace arbalest::cli
