// Convolutions choose among cuDNN's algorithms and skip failing ones.
#include <string>
#include <vector>

#include "engine/backends/cuda_devices.h"
#include "engine/base/error.h"
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/catch.h"

#include <cudnn.h>

namespace arbalest::tests {
namespace {

using Catch::Matchers::Contains;
using engine::ErrorKind;
using engine::Precision;

std::unique_ptr<engine::Device> open_gpu() { return engine::open_device(engine::parse_device("cuda:0")); }

// The passes by cuDNN. Another line says that cuDNN computes the convolution.
std::vector<std::string> choices_of(const engine::Device& device) {
  std::vector<std::string> lines;
  for (const engine::KernelChoice& choice : device.kernel_choices()) {
    if (!choice.question.starts_with("convolution of ")) lines.push_back(to_text(choice));
  }
  return lines;
}

engine::Conv2dSpec small_convolution(const engine::Device& device, std::int64_t filters, std::int64_t side) {
  return {.input = device.plain_layout({2, 3, 6, 5}, engine::DType::kFloat32),
          .filters = filters,
          .window = {.kernel = {side, side}, .stride = {1, 1}, .padding = {1, 1}, .dilation = {1, 1}},
          .bias = false};
}

std::unique_ptr<engine::Operator> prepare(engine::Device& device, Precision precision, std::int64_t filters = 80,
                                          std::int64_t side = 1) {
  return device.prepare(small_convolution(device, filters, side), {.precision = precision});
}

std::vector<std::string> choices_in(Precision precision, std::int64_t side) {
  const auto device = open_gpu();
  static_cast<void>(prepare(*device, precision, 80, side));
  std::vector<std::string> choices = choices_of(*device);
  REQUIRE(choices.size() == 3);
  return choices;
}

}  // namespace

TEST_CASE("a convolution takes the first repeatable algorithm with the math type that its precision allows") {
  const std::vector<std::string> exact = choices_in(Precision::kFloat32, 1);
  CHECK_THAT(exact[0], Contains("input 2x3x6x5, 80 filters of 1x1") &&
                           Contains(": output: IMPLICIT_PRECOMP_GEMM, no tensor cores, workspace 256 bytes"));
  CHECK_THAT(exact[1], Contains(": weight gradient: ALGO_1, no tensor cores, workspace 512 bytes"));
  CHECK_THAT(exact[2], Contains(": input gradient: ALGO_1, no tensor cores, workspace 512 bytes"));
  for (const Precision precision : {Precision::kTensorFloat32, Precision::kBFloat16}) {
    cuda_stand_in::reset();
    for (const std::string& choice : choices_in(precision, 3))
      CHECK_THAT(choice, Contains("WINOGRAD_NONFUSED, tensor cores"));
  }
}

TEST_CASE("in float32, filters of 3 x 3 prefer Winograd's algorithm to cuDNN's first") {
  for (const std::string& choice : choices_in(Precision::kFloat32, 3))
    CHECK_THAT(choice, Contains("WINOGRAD_NONFUSED, no tensor cores, workspace 768 bytes"));
}

TEST_CASE(
    "in float32, the gradients of filters of 3 x 3 without Winograd's algorithm prefer the Fourier transform for the "
    "weights only") {
  const auto device = open_gpu();
  for (const char* call :
       {"cudnnConvolutionForward", "cudnnConvolutionBackwardFilter", "cudnnConvolutionBackwardData"}) {
    cuda_stand_in::fail_next(call, CUDNN_STATUS_NOT_SUPPORTED);
  }
  static_cast<void>(prepare(*device, Precision::kFloat32, 80, 3));
  const std::vector<std::string> choices = choices_of(*device);
  CHECK_THAT(choices[0], Contains("output: IMPLICIT_PRECOMP_GEMM"));
  CHECK_THAT(choices[1], Contains("weight gradient: FFT"));
  CHECK_THAT(choices[2], Contains("input gradient: ALGO_1"));
}

TEST_CASE("larger filters do without Winograd's algorithm, and in float32 their gradients take the Fourier transform") {
  const std::vector<std::string> exact = choices_in(Precision::kFloat32, 5);
  CHECK_THAT(exact[0], Contains("output: IMPLICIT_PRECOMP_GEMM, no tensor cores"));
  CHECK_THAT(exact[1], Contains("weight gradient: FFT, no tensor cores, workspace 640 bytes"));
  CHECK_THAT(exact[2], Contains("input gradient: FFT, no tensor cores, workspace 640 bytes"));
  for (const Precision precision : {Precision::kTensorFloat32, Precision::kBFloat16}) {
    cuda_stand_in::reset();
    const std::vector<std::string> choices = choices_in(precision, 5);
    CHECK_THAT(choices[0], Contains("IMPLICIT_PRECOMP_GEMM, tensor cores"));
    CHECK_THAT(choices[1], Contains("ALGO_1, tensor cores"));
    CHECK_THAT(choices[2], Contains("ALGO_1, tensor cores"));
  }
}

TEST_CASE("convolutions in float32 copy no tensor, neither in the engine nor in cuDNN's workspace") {
  const auto device = open_gpu();
  const auto convolution = prepare(*device, Precision::kFloat32);
  CHECK(convolution->traits().backward_reads_inputs);
  CHECK(convolution->traits().saved_bytes == 0);
  CHECK(convolution->traits().scratch_bytes == 512);
}

TEST_CASE("the convolutions of a device share one handle for queries") {
  const auto device = open_gpu();
  for (const std::int64_t filters : {66, 68, 72}) static_cast<void>(prepare(*device, Precision::kFloat32, filters));
  CHECK(cuda_stand_in::calls("cudnnCreate") == 1);
}

TEST_CASE("an algorithm that fails its trial is skipped, and the choice says so") {
  const auto device = open_gpu();
  cuda_stand_in::fail_next("cudnnConvolutionForward", CUDNN_STATUS_EXECUTION_FAILED);
  cuda_stand_in::fail_next("cudnnGetConvolutionBackwardDataWorkspaceSize", CUDNN_STATUS_NOT_SUPPORTED);
  static_cast<void>(prepare(*device, Precision::kTensorFloat32));
  const std::vector<std::string> choices = choices_of(*device);
  REQUIRE(choices.size() == 3);
  CHECK_THAT(choices[0], Contains("output: IMPLICIT_PRECOMP_GEMM, tensor cores, workspace 128 bytes; WINOGRAD_NONFUSED "
                                  "with tensor cores failed (CUDNN_STATUS_"));
  CHECK_THAT(choices[2], Contains("input gradient: ALGO_1, tensor cores, workspace 128 bytes; WINOGRAD_NONFUSED"));
}

TEST_CASE("if every algorithm fails, the error names the convolution and the algorithms") {
  const auto device = open_gpu();
  for (const int after : {0, 1, 2}) {
    cuda_stand_in::fail_next("cudnnConvolutionForward", CUDNN_STATUS_EXECUTION_FAILED, after);
  }
  try {
    static_cast<void>(prepare(*device, Precision::kFloat32));
    FAIL("no error");
  } catch (const engine::Error& error) {
    CHECK(error.kind() == ErrorKind::kDevice);
    CHECK_THAT(error.what(), Contains("no repeatable algorithm") &&
                                 Contains("output of this convolution: input 2x3x6x5") &&
                                 Contains("IMPLICIT_PRECOMP_GEMM with no tensor cores failed") &&
                                 Contains("IMPLICIT_GEMM with no tensor cores failed"));
  }
}

TEST_CASE("a trial that runs out of memory is an out-of-memory error and changes no choice") {
  const auto device = open_gpu();
  constexpr int kAllocations = 4;  // two operands, the result, the workspace
  for (int failing = 0; failing < kAllocations; ++failing) {
    CAPTURE(failing);
    cuda_stand_in::fail_next("cudaMallocAsync", cudaErrorMemoryAllocation, failing);
    try {
      static_cast<void>(prepare(*device, Precision::kFloat32));
      FAIL("no error");
    } catch (const engine::Error& error) {
      CHECK(error.kind() == ErrorKind::kOutOfMemory);
      CHECK_THAT(error.what(),
                 Contains("trying the output of a convolution (input 2x3x6x5") && Contains("cuda:0: cannot allocate"));
    }
  }
  static_cast<void>(prepare(*device, Precision::kFloat32));
  CHECK_THAT(choices_of(*device)[0], Contains("IMPLICIT_PRECOMP_GEMM, no tensor cores"));
}

TEST_CASE("a device that fails during a trial is a failed device, not a failed algorithm") {
  ErrorKind kind = ErrorKind::kInternal;
  std::string message;
  {
    const auto device = open_gpu();
    constexpr int kFills = 4;  // fills of the trial's memory
    cuda_stand_in::fail_execution(cudaErrorIllegalAddress, kFills);
    try {
      static_cast<void>(prepare(*device, Precision::kFloat32));
    } catch (const engine::Error& error) {
      kind = error.kind();
      message = error.what();
    }
  }
  CHECK(kind == ErrorKind::kDevice);
  CHECK_THAT(message, Contains("trying the output of a convolution") && Contains("illegal memory access"));
  cuda_stand_in::reset();  // memory of a failed device cannot be freed
}

}  // namespace arbalest::tests
