// These structs name a device, and say how it is opened.
#pragma once

#include <string>
#include <vector>

#include "engine/kernel_choices.h"

namespace arbalest::engine {

struct DeviceSpec {
  std::string name;  // "cpu", "cpu:0-1", "cuda:0"
  // CPU: the named cores, ascending; empty: all cores that the process may use, unpinned.
  std::vector<int> cores;
  int cuda_ordinal = -1;  // GPU: its ordinal; -1: a CPU device

  bool is_cuda() const noexcept { return cuda_ordinal >= 0; }
};

class StreamObserver;

struct DeviceOptions {
  StreamObserver* observer = nullptr;  // must outlive the device
  bool graphs = true;                  // GPU: recorded work is replayed as CUDA graphs; false: operator by operator
  // CPU without named cores: the waiting thread of a stream lends its core to the stream it waits for
  // (engine/cpu/runtime/core_lending.h). False only to measure the effect.
  bool lend_cores = true;
  // GPU: how kernels are chosen. Code without a job, such as a test of bytes, gets the rule.
  KernelSelection kernels = KernelSelection::kFixed;
  // GPU: choices of an earlier run. A question that they answer is neither timed nor left to the rule.
  std::vector<KernelChoice> recorded_kernels = {};
  // GPU: whether a recorded choice that this device cannot take is an error; else the question is answered anew.
  bool keeps_recorded_kernels = true;
};

}  // namespace arbalest::engine
