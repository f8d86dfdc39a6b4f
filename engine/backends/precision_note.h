// What a precision brings on a device, in words.
#pragma once

#include <span>
#include <string>

#include "engine/base/precision.h"
#include "engine/device.h"

namespace arbalest::engine {

// Names the instructions that compute in this precision, and says what to expect of it. `instruction_sets`: those in
// force on the device's machine.
std::string precision_note(const DeviceSpec& device, Precision precision,
                           std::span<const std::string> instruction_sets);

}  // namespace arbalest::engine
