// Names of devices, the devices of this machine, and how to open them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/precision.h"
#include "engine/collective.h"
#include "engine/device.h"
#include "engine/device_options.h"
#include "engine/ops/exchange.h"

namespace arbalest::engine {

// Parses "cpu", "cpu:2", "cpu:0-1", "cpu:0,2-3", "cuda" (the first GPU), "cuda:1". Throws ErrorKind::kInvalidJob for a
// malformed name, an unknown kind of device, or a core that this process may not use.
DeviceSpec parse_device(std::string_view name);

// Number of cores that the device computes on; 1 for a GPU.
int core_count(const DeviceSpec& spec);

// Throws ErrorKind::kInvalidJob if two devices share a core, are the same GPU, or are of different kinds.
void check_disjoint(const std::vector<DeviceSpec>& devices);

// The instruction sets of this processor (host::instruction_sets()) that the CPU's kernels may use: all of them, unless
// oneDNN's environment variable ONEDNN_MAX_CPU_ISA (or DNNL_MAX_CPU_ISA) limits them.
std::vector<std::string> instruction_sets_in_force();

// Returns why the device does not support `precision`, and what to do about it; "" if it does. GPUs of compute
// capability 8.0 and newer, which Arbalest requires, support every precision. A CPU supports BF16 if it has
// instructions for it that are in force. The job reader rejects jobs with this message. A device from open_device()
// computes in BF16 wherever oneDNN does, but without such instructions BF16 takes many times as long as FP32.
std::string precision_problem(const DeviceSpec& device, Precision precision);
// As above, for a processor with these instruction sets.
std::string precision_problem(const DeviceSpec& device, Precision precision,
                              std::span<const std::string> instruction_sets);

std::unique_ptr<Device> open_device(const DeviceSpec& spec, const DeviceOptions& options = {});

// Makes the all-reduce between the devices of a job in all processes of `world`. The devices of all processes must be
// of one kind. Collective. Devices and `world` must outlive the result. Throws as make_cuda_collective does.
std::unique_ptr<Collective> make_collective(std::span<const std::unique_ptr<Device>> devices, process::World& world);

// Makes the group of the devices that compute a split model: those of all processes of `world`, which must be of one
// kind. Collective. Returns each local device's rank in the group. Devices and `world` must outlive the group. Throws
// as make_cuda_exchange does.
std::vector<ExchangeMember> make_exchange(std::span<const std::unique_ptr<Device>> devices, process::World& world);

// The devices of a job that names none: the GPUs of this machine, or its CPU if it has no GPU.
std::vector<DeviceSpec> list_devices();

}  // namespace arbalest::engine
