#include "tests/cuda_stand_in/launch.h"

#include <sys/mman.h>

#include <algorithm>

#include <fmt/format.h>

#include "tests/cuda_stand_in/call.h"
#include "tests/cuda_stand_in/fibers.h"
#include "tests/cuda_stand_in/kernel_language.h"
#include "tests/cuda_stand_in/memory.h"

namespace arbalest::tests::cuda_stand_in {

namespace {

constexpr const char* kName = "cudaLaunchKernelEx";

bool is_possible(const cudaLaunchConfig_t& config) {
  constexpr unsigned kMaxThreads = 1024;
  constexpr unsigned kMaxBlocks = 0x7FFFFFFF;
  const auto product = [](dim3 size) { return std::uint64_t{size.x} * size.y * size.z; };
  const std::uint64_t threads = product(config.blockDim);
  const std::uint64_t blocks = product(config.gridDim);
  return threads > 0 && threads <= kMaxThreads && blocks > 0 && blocks <= kMaxBlocks;
}

// Launch attributes change when or where blocks run, which the stand-in does not model.
cudaError_t check_attributes(const cudaLaunchConfig_t& config) {
  if (config.numAttrs == 0) return cudaSuccess;
  const bool is_cooperative = std::any_of(config.attrs, config.attrs + config.numAttrs, [](const auto& attribute) {
    return attribute.id == cudaLaunchAttributeCooperative;
  });
  violation(fmt::format("{}: with {}, which the stand-in does not model", kName,
                        is_cooperative ? "a cooperative grid" : "launch attributes"));
  return cudaErrorNotSupported;
}

// Does not count the kernel's static shared memory, which on a GPU must fit, too.
cudaError_t check_shared_memory(const cudaLaunchConfig_t& config, const void* function, int device) {
  const auto limit = state().dynamic_limits.find({device, function});
  const std::size_t allowed = limit == state().dynamic_limits.end() ? kSharedMemory : limit->second;
  if (config.dynamicSmemBytes <= allowed) return cudaSuccess;
  const char* remedy = config.dynamicSmemBytes <= most_shared_memory(state().machine)
                           ? "; cudaFuncSetAttribute must allow more first"
                           : ", and no block can have as much";
  violation(fmt::format("{}: {} bytes of dynamic shared memory, where this kernel may have {} on device {}{}", kName,
                        config.dynamicSmemBytes, allowed, device, remedy));
  return cudaErrorInvalidValue;
}

// Whether the host has memory at this address. Otherwise the eight bytes of an argument are numbers, not an address.
bool is_mapped(const void* pointer) {
  constexpr std::uintptr_t kPage = 4096;
  constexpr std::uintptr_t kLowest = 0x5000'0000'0000;  // of program, heap, libraries, stack; sanitizers are below
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  unsigned char resident = 0;
  return address >= kLowest && mincore(reinterpret_cast<void*>(address / kPage * kPage), 1, &resident) == 0;
}

}  // namespace

std::size_t most_shared_memory(const Machine& machine) {
  constexpr std::size_t kKiB = 1024;
  if (machine.major >= 9) return 227 * kKiB;
  return machine.major == 8 && machine.minor % 7 == 0 ? 163 * kKiB : 99 * kKiB;  // 8.0 and 8.7, else
}

cudaError_t launch_kernel(const cudaLaunchConfig_t& config, const void* function,
                          const std::vector<Argument>& arguments, std::function<void()> thread) {
  return call(kName, InCapture::kLegal, [&](Thread& host) {
    CUstream_st* stream = find_stream(config.stream, kName);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (stream->device != host.device) {
      violation(
          fmt::format("{}: on a stream of device {} while device {} is current", kName, stream->device, host.device));
      return cudaErrorInvalidResourceHandle;
    }
    if (!is_possible(config)) return cudaErrorInvalidConfiguration;
    if (const cudaError_t problem = check_attributes(config); problem != cudaSuccess) return problem;
    const cudaError_t problem = check_shared_memory(config, function, stream->device);
    if (problem != cudaSuccess) return problem;
    std::vector<const void*> uses;
    for (const Argument& argument : arguments) {
      if (argument.pointer == nullptr) continue;
      if (argument.certain || find_memory(argument.pointer).allocation != nullptr || is_mapped(argument.pointer)) {
        check_device_range(argument.pointer, 1, stream->device, kName);
        uses.push_back(argument.pointer);
      }
    }
    auto run = [grid = config.gridDim, block = config.blockDim, bytes = config.dynamicSmemBytes,
                thread = std::move(thread)] { run_grid(grid, block, thread, bytes); };
    return enqueue(*stream, make_work(kName, std::move(uses), std::move(run)), kName);
  });
}

extern "C" {

// Legal in a capture: it is no work of a stream.
cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  return call("cudaFuncSetAttribute", InCapture::kLegal, [&](Thread& host) {
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) {
      violation("cudaFuncSetAttribute: of an attribute that the stand-in does not model");
      return cudaErrorNotSupported;
    }
    if (value < 0 || static_cast<std::size_t>(value) > most_shared_memory(state().machine)) {
      return cudaErrorInvalidValue;
    }
    state().dynamic_limits[{host.device, function}] = static_cast<std::size_t>(value);
    return cudaSuccess;
  });
}

cudaError_t cudaLaunchCooperativeKernel(const void*, dim3, dim3, void**, std::size_t, cudaStream_t) {
  return call("cudaLaunchCooperativeKernel", InCapture::kLegal, [&](Thread&) {
    violation("cudaLaunchCooperativeKernel: a cooperative grid, which the stand-in does not model");
    return cudaErrorNotSupported;
  });
}

}  // extern "C"

}  // namespace arbalest::tests::cuda_stand_in
