// Names of devices, what devices this machine has, and opening them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/collective.h"
#include "engine/device.h"
#include "engine/precision.h"

namespace arbalest::engine {

struct DeviceSpec {
  std::string name;        // "cpu", "cpu:0-1", "cuda:0"
  std::vector<int> cores;  // CPU: named cores, ascending; empty: all that the process may use, unpinned
  int cuda_ordinal = -1;   // GPU: its number; -1: a CPU device

  bool is_cuda() const noexcept { return cuda_ordinal >= 0; }
};

// "cpu", "cpu:2", "cpu:0-1", "cpu:0,2-3", "cuda" (the first GPU), "cuda:1". Throws ErrorKind::kInvalidJob for a name of
// another form, an unknown kind of device, or a core that this process may not use.
DeviceSpec parse_device(std::string_view name);

// Cores that a device of this name computes on; 1 for a GPU.
int core_count(const DeviceSpec& spec);

// Throws ErrorKind::kInvalidJob if two of them share a core, are the same GPU, or are of different kinds.
void check_disjoint(const std::vector<DeviceSpec>& devices);

// Why a device of this name does not compute in `precision`, and what to do about it; "" if it does. Every GPU that
// Arbalest runs on (compute capability 8.0 and newer) knows all of them. A CPU knows BF16 if it has instructions
// for it. Jobs are refused by this; the device that open_device() gives computes in BF16 wherever oneDNN does, which
// takes many times as long as FP32 where it makes up for the instructions.
std::string precision_problem(const DeviceSpec& device, Precision precision);
// The same on a processor with these instruction sets (host::instruction_sets()).
std::string precision_problem(const DeviceSpec& device, Precision precision,
                              std::span<const std::string> instruction_sets);

struct DeviceOptions {
  StreamObserver* observer = nullptr;  // must outlive the device
  bool graphs = true;                  // GPU: recorded work is replayed as CUDA graphs; else operator by operator
  // CPU without named cores: the thread of a stream that waits lends its core to the stream it waits for
  // (engine/cpu/core_lending.h). False is for measuring what that brings, nothing else.
  bool lend_cores = true;
};

std::unique_ptr<Device> open_device(const DeviceSpec& spec, const DeviceOptions& options = {});

// All-reduce between the devices of a job, one rank each. They must be of one kind and outlive it.
std::unique_ptr<Collective> make_collective(std::span<const std::unique_ptr<Device>> devices);

// What a job runs on that names no device: the GPUs of this machine, else its CPU.
std::vector<DeviceSpec> list_devices();

}  // namespace arbalest::engine
