// What tests ask of the stand-in for CUDA's libraries. It is linked instead of cudart, cuDNN, cuBLAS and NCCL: device
// memory is host memory, kernels are C++ functions (kernel_language.h), and enqueued work runs later, in an order that
// a seeded generator picks among all that the streams allow. What the real libraries would answer with a wrong result
// or a crash on some days only is found on every day and kept as a violation; a host thread that touches memory of a
// device ends the program (block.h). All functions may be called from any thread.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace arbalest::tests::cuda_stand_in {

// The default is one card like an H100 under a driver of the toolkit's version.
struct Machine {
  int devices = 1;
  int major = 9;  // compute capability
  int minor = 0;
  std::size_t memory = std::size_t{80} << 30U;  // bytes of each device
  int driver_version = CUDART_VERSION;          // 12040 is 12.4; 0: no driver
};

// Forgets everything: memory, handles, enqueued work, violations, injected errors. Nothing made before may be used.
//   seed: of the order in which work runs
void reset(const Machine& machine = {}, std::uint64_t seed = 1);

// The next call of a function ("cudaMallocAsync", "cudnnCreate", ...), or the one after `after` more calls of it, does
// nothing but return `error` (a cudaError_t, cudnnStatus_t, cublasStatus_t or ncclResult_t).
void fail_next(const std::string& function, int error, int after = 0);
// The next kernel, copy or library call to run on a device (or the one after `after` more) fails there: the device runs
// nothing any more, and every call that needs it returns `error`.
void fail_execution(cudaError_t error, int after = 0);
// The next all-reduce to begin on a rank's stream (or the one after `after` more) never ends, nor do its peers, until
// the communicators are aborted; meanwhile ncclCommGetAsyncError tells `error` (a ncclResult_t).
void fail_all_reduce(int error, int after = 0);

// Runs up to `count` steps of enqueued work; returns how many there were.
int take_steps(int count);

// What was done wrong so far, each once, in order.
std::vector<std::string> violations();
// Handles and memory that nobody has given back.
std::vector<std::string> leaks();
// Whether host threads are kept from memory of devices, which not all processors can do.
bool finds_host_access();
// Throws std::runtime_error with all violations, and with the leaks where `also_leaks`.
void require_clean(bool also_leaks = true);

// Work that streams have been given by calls and launches of graphs so far (a launch counts once).
std::uint64_t enqueued_works();
// Hardware queues of each device: what CUDA_DEVICE_MAX_CONNECTIONS was at the program's first call that needs a device,
// or the default, which is 8. More than 32 there are not.
int hardware_queues();
// How often a function has been called ("cudnnCreate").
std::uint64_t calls(const std::string& function);

}  // namespace arbalest::tests::cuda_stand_in
