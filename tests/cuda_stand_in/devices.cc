// Devices, versions and errors.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "tests/cuda_stand_in/call.h"
#include "tests/cuda_stand_in/executor.h"
#include "tests/cuda_stand_in/launch.h"

namespace arbalest::tests::cuda_stand_in {

namespace {

bool is_device(int ordinal) { return ordinal >= 0 && ordinal < static_cast<int>(state().devices.size()); }

}  // namespace

int hardware_queues() {
  const Lock lock;
  return state().hardware_queues.value_or(0);
}

extern "C" {

cudaError_t cudaDriverGetVersion(int* version) {
  const Lock lock;
  *version = state().machine.driver_version;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  const Lock lock;
  start_runtime();
  *count = 0;
  const int injected = take_injected("cudaGetDeviceCount");
  const cudaError_t problem = injected != 0 ? static_cast<cudaError_t>(injected) : machine_problem();
  if (problem == cudaSuccess) *count = state().machine.devices;
  return note(problem);
}

cudaError_t cudaSetDevice(int ordinal) {
  const Lock lock;
  if (machine_problem() != cudaSuccess) return note(machine_problem());
  if (!is_device(ordinal)) return note(cudaErrorInvalidDevice);
  this_thread().device = ordinal;
  return note(state().devices[static_cast<std::size_t>(ordinal)].failure);
}

cudaError_t cudaGetDevice(int* ordinal) {
  return call("cudaGetDevice", InCapture::kLegal, [&](Thread& thread) {
    *ordinal = thread.device;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int ordinal) {
  return call("cudaGetDeviceProperties", InCapture::kLegal, [&](Thread&) {
    if (!is_device(ordinal)) return cudaErrorInvalidDevice;
    *properties = {};
    const std::string name = "stand-in for a GPU";
    std::ranges::copy(name, properties->name);
    properties->uuid.bytes[0] = static_cast<char>(1 + state().machine.first_device + ordinal);
    properties->totalGlobalMem = state().machine.memory;
    properties->major = state().machine.major;
    properties->minor = state().machine.minor;
    properties->multiProcessorCount = 132;
    properties->maxThreadsPerBlock = 1024;
    properties->maxThreadsPerMultiProcessor = 2048;
    properties->sharedMemPerBlock = kSharedMemory;
    properties->sharedMemPerBlockOptin = most_shared_memory(state().machine);
    properties->l2CacheSize = 50 << 20;
    properties->warpSize = 32;
    properties->unifiedAddressing = 1;
    properties->canMapHostMemory = 1;
    properties->concurrentKernels = 1;
    properties->memoryPoolsSupported = 1;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSynchronize() {
  constexpr const char* kName = "cudaDeviceSynchronize";
  return call(kName, InCapture::kIllegal, [&](Thread& thread) {
    if (spoils_captures_of_others(kName)) return cudaErrorStreamCaptureUnsupported;
    const auto is_idle = [&](const CUstream_st* stream) {
      return stream->device != thread.device || stream->queue.empty();
    };
    return run_until([&] { return std::ranges::all_of(state().streams, is_idle); }, thread.device, kName);
  });
}

// Returns the failure of a device at every call, and other errors once.
cudaError_t cudaGetLastError() {
  const Lock lock;
  ++state().calls["cudaGetLastError"];
  Thread& thread = this_thread();
  const cudaError_t result = thread.last_error;
  const bool stays = std::ranges::any_of(
      state().devices, [&](const Device& device) { return result != cudaSuccess && device.failure == result; });
  if (!stays) thread.last_error = cudaSuccess;
  return result;
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidMemcpyDirection: return "cudaErrorInvalidMemcpyDirection";
    case cudaErrorInsufficientDriver: return "cudaErrorInsufficientDriver";
    case cudaErrorNoDevice: return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle: return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady: return "cudaErrorNotReady";
    case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
    case cudaErrorLaunchTimeout: return "cudaErrorLaunchTimeout";
    case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
    case cudaErrorStreamCaptureUnsupported: return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated: return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureMerge: return "cudaErrorStreamCaptureMerge";
    case cudaErrorStreamCaptureUnmatched: return "cudaErrorStreamCaptureUnmatched";
    case cudaErrorStreamCaptureUnjoined: return "cudaErrorStreamCaptureUnjoined";
    case cudaErrorStreamCaptureIsolation: return "cudaErrorStreamCaptureIsolation";
    case cudaErrorStreamCaptureImplicit: return "cudaErrorStreamCaptureImplicit";
    case cudaErrorCapturedEvent: return "cudaErrorCapturedEvent";
    case cudaErrorStreamCaptureWrongThread: return "cudaErrorStreamCaptureWrongThread";
    case cudaErrorNotSupported: return "cudaErrorNotSupported";
    default: return "cudaErrorUnknown";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInsufficientDriver: return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
    case cudaErrorLaunchFailure: return "unspecified launch failure";
    default: return cudaGetErrorName(error);
  }
}

}  // extern "C"

}  // namespace arbalest::tests::cuda_stand_in
