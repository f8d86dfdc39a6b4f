// The tests' interface to the stand-in for CUDA's libraries. It is linked instead of cudart, cuDNN, cuBLAS and NCCL.
// Device memory is host memory, and kernels are C++ functions (kernel_language.h). Enqueued work runs later, in an
// order that a seeded generator picks among those that the streams allow. Errors that give wrong results or crashes
// only sometimes with the real libraries are always detected and recorded as violations. A host thread that accesses
// device memory ends the program (block.h). All functions may be called from any thread.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace arbalest::tests::cuda_stand_in {

// The default is one GPU like an H100, with a driver of the toolkit's version.
struct Machine {
  int devices = 1;
  int first_device = 0;  // the number of GPUs before it, which are hidden from this process
  int major = 9;         // compute capability
  int minor = 0;
  std::size_t memory = std::size_t{80} << 30U;  // bytes of each device
  int driver_version = CUDART_VERSION;          // 12040 is 12.4; 0: no driver
};

// Until the first reset(), the variable ARBALEST_STAND_IN_GPUS says how many GPUs the machine has, and
// CUDA_VISIBLE_DEVICES, as "2" or "0,1", which of them this process sees. A program with the first variable ends with
// exit code 99 and prints its violations, if it has any.

// Discards everything: memory, handles, enqueued work, violations, injected errors. Objects created before must not be
// used any more.
//   seed: seed of the order in which work runs
void reset(const Machine& machine = {}, std::uint64_t seed = 1);

// After `after` more calls of a function ("cudaMallocAsync", "cudnnCreate", ...), the next call only returns `error` (a
// cudaError_t, cudnnStatus_t, cublasStatus_t or ncclResult_t).
void fail_next(const std::string& function, int error, int after = 0);
// After `after` more kernels, copies and library calls have run on a device, the next one fails. From then on the
// device runs nothing, and every call that needs it returns `error`.
void fail_execution(cudaError_t error, int after = 0);
// After `after` more all-reduces have begun on a rank's stream, the next one and its peers do not end until the
// communicators are aborted. In the meantime ncclCommGetAsyncError returns `error` (an ncclResult_t).
void fail_all_reduce(int error, int after = 0);

// There is no clock: between two events of a stream pass the times of the works between them. A work takes
// kMicrosecondsOfWork, or what this sets for the works that a function enqueues: "cublasGemmEx", "cudaLaunchKernelEx";
// or for one algorithm of a convolution, by its number: "cudnnConvolutionForward 6". A graph takes as long as its nodes
// one after the other.
inline constexpr double kMicrosecondsOfWork = 25'000.0;  // so long that a trial of kernels runs few of them
void set_time(const std::string& function, double microseconds);

// Runs up to `count` steps of enqueued work and returns their number.
int take_steps(int count);

// Returns the violations so far, in order and without duplicates.
std::vector<std::string> violations();
// Returns handles and memory that were not released.
std::vector<std::string> leaks();
// Whether access of host threads to device memory is detected. Not all processors support this.
bool finds_host_access();
// Throws std::runtime_error with all violations, and with the leaks if `also_leaks`, if there are any.
void require_clean(bool also_leaks = true);

// Returns the number of works that calls and launches of graphs have enqueued so far. A launch counts once.
std::uint64_t enqueued_works();
// Returns the number of nodes of each graph that has been instantiated, in this order. A call of a library is one node.
std::vector<std::size_t> nodes_of_graphs();
// Returns the number of hardware queues of each device: the value of CUDA_DEVICE_MAX_CONNECTIONS at the program's first
// call that needs a device, at most 32, or 8 by default.
int hardware_queues();
// Returns how often a function, such as "cudnnCreate", has been called.
std::uint64_t calls(const std::string& function);

}  // namespace arbalest::tests::cuda_stand_in
