// Launches of kernels.
#include <sys/mman.h>

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
  return threads > 0 && threads <= kMaxThreads && blocks > 0 && blocks <= kMaxBlocks && config.dynamicSmemBytes == 0;
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

cudaError_t launch_kernel(const cudaLaunchConfig_t& config, const std::vector<Argument>& arguments,
                          std::function<void()> thread) {
  return call(kName, InCapture::kLegal, [&](Thread& host) {
    CUstream_st* stream = find_stream(config.stream, kName);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (stream->device != host.device) {
      violation(
          fmt::format("{}: on a stream of device {} while device {} is current", kName, stream->device, host.device));
      return cudaErrorInvalidResourceHandle;
    }
    if (!is_possible(config)) return cudaErrorInvalidConfiguration;
    std::vector<const void*> uses;
    for (const Argument& argument : arguments) {
      if (argument.pointer == nullptr) continue;
      if (argument.certain || find_memory(argument.pointer).allocation != nullptr || is_mapped(argument.pointer)) {
        check_device_range(argument.pointer, 1, stream->device, kName);
        uses.push_back(argument.pointer);
      }
    }
    auto run = [grid = config.gridDim, block = config.blockDim, thread = std::move(thread)] {
      run_grid(grid, block, thread);
    };
    return enqueue(*stream, make_work(kName, std::move(uses), std::move(run)), kName);
  });
}

}  // namespace arbalest::tests::cuda_stand_in
