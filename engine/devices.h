// Names of devices, what devices this machine has, and opening one.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/device.h"

namespace arbalest::engine {

struct DeviceSpec {
  std::string name;        // "cpu", "cpu:0-1"
  std::vector<int> cores;  // named cores, ascending; empty: all that the process may use, unpinned
};

// "cpu", "cpu:2", "cpu:0-1", "cpu:0,2-3". Throws ErrorKind::kInvalidJob for a name of another form, an unknown kind of
// device, or a core that this process may not use.
DeviceSpec parse_device(std::string_view name);

// Cores that a device of this name computes on.
int core_count(const DeviceSpec& spec);

// Throws ErrorKind::kInvalidJob if two of them share a core.
void check_disjoint(const std::vector<DeviceSpec>& devices);

struct DeviceOptions {
  StreamObserver* observer = nullptr;  // must outlive the device
};

std::unique_ptr<Device> open_device(const DeviceSpec& spec, const DeviceOptions& options = {});

// Every device of this machine that a job can name.
std::vector<DeviceSpec> list_devices();

}  // namespace arbalest::engine
