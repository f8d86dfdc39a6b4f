// Convolutions choose among cuDNN's algorithms, by the rule, by time, or as recorded, and skip failing ones.
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
using engine::KernelChoice;
using engine::KernelSelection;
using engine::Precision;

std::unique_ptr<engine::Device> open_gpu(KernelSelection kernels = KernelSelection::kFixed,
                                         std::vector<KernelChoice> recorded = {}) {
  return engine::open_device(engine::parse_device("cuda:0"),
                             {.kernels = kernels, .recorded_kernels = std::move(recorded)});
}

// Filters that are too many for kernels of ours, so that cuDNN is the only candidate.
constexpr std::int64_t kManyFilters = 520;

// Makes an algorithm of each pass the fastest that is not the rule's.
void make_later_algorithms_faster() {
  for (const char* pass :
       {"cudnnConvolutionForward", "cudnnConvolutionBackwardFilter", "cudnnConvolutionBackwardData"}) {
    cuda_stand_in::set_time(pass, 40.0);
  }
  cuda_stand_in::set_time("cudnnConvolutionForward " + std::to_string(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM), 7.0);
  cuda_stand_in::set_time("cudnnConvolutionBackwardFilter " + std::to_string(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT),
                          8.0);
  cuda_stand_in::set_time("cudnnConvolutionBackwardData " + std::to_string(CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT), 9.0);
}

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
                           Contains(": output: IMPLICIT_PRECOMP_GEMM, no tensor cores; workspace 256 bytes"));
  CHECK_THAT(exact[1], Contains(": weight gradient: ALGO_1, no tensor cores; workspace 512 bytes"));
  CHECK_THAT(exact[2], Contains(": input gradient: ALGO_1, no tensor cores; workspace 512 bytes"));
  for (const Precision precision : {Precision::kTensorFloat32, Precision::kBFloat16}) {
    cuda_stand_in::reset();
    for (const std::string& choice : choices_in(precision, 3))
      CHECK_THAT(choice, Contains("WINOGRAD_NONFUSED, tensor cores"));
  }
}

TEST_CASE("in float32, filters of 3 x 3 prefer Winograd's algorithm to cuDNN's first") {
  for (const std::string& choice : choices_in(Precision::kFloat32, 3))
    CHECK_THAT(choice, Contains("WINOGRAD_NONFUSED, no tensor cores; workspace 768 bytes"));
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
  CHECK_THAT(exact[1], Contains("weight gradient: FFT, no tensor cores; workspace 640 bytes"));
  CHECK_THAT(exact[2], Contains("input gradient: FFT, no tensor cores; workspace 640 bytes"));
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
  CHECK_THAT(choices[0],
             Contains("output: IMPLICIT_PRECOMP_GEMM, tensor cores; workspace 128 bytes; WINOGRAD_NONFUSED, "
                      "tensor cores failed (CUDNN_STATUS_"));
  CHECK_THAT(choices[2], Contains("input gradient: ALGO_1, tensor cores; workspace 128 bytes; WINOGRAD_NONFUSED"));
}

TEST_CASE("of timed algorithms the fastest is taken, with its workspace") {
  make_later_algorithms_faster();
  const auto device = open_gpu(KernelSelection::kTimed);
  const auto convolution = prepare(*device, Precision::kFloat32, kManyFilters, 3);
  const std::vector<KernelChoice> choices = device->kernel_choices();
  REQUIRE(choices.size() == 3);
  CHECK(choices[0].answer == "IMPLICIT_GEMM, no tensor cores");
  CHECK(choices[0].note == "workspace 0 bytes");
  CHECK(choices[1].answer == "FFT, no tensor cores");
  CHECK(choices[1].note == "workspace 640 bytes");
  CHECK(choices[2].answer == "FFT, no tensor cores");
  CHECK(convolution->traits().scratch_bytes == 640);
  for (const KernelChoice& choice : choices) {
    CAPTURE(choice.question);
    REQUIRE(choice.candidates.size() == 3);
    CHECK(choice.candidates[0].name == "WINOGRAD_NONFUSED, no tensor cores");  // the rule's
    for (const engine::KernelCandidate& candidate : choice.candidates) {
      const double expected = candidate.name != choice.answer ? 40.0
                              : &choice == &choices[0]        ? 7.0
                              : &choice == &choices[1]        ? 8.0
                                                              : 9.0;
      CHECK(candidate.microseconds.value() == Approx(expected).epsilon(1e-3));
    }
  }
  CHECK_THAT(choices[0].question, Contains("520 filters of 3x3") && Contains(", FP32: output"));
}

TEST_CASE("of equally fast algorithms the rule's is taken") {
  const auto device = open_gpu(KernelSelection::kTimed);
  static_cast<void>(prepare(*device, Precision::kFloat32, kManyFilters, 3));
  for (const KernelChoice& choice : device->kernel_choices()) {
    CHECK(choice.answer == "WINOGRAD_NONFUSED, no tensor cores");
  }
}

TEST_CASE("recorded algorithms are taken without timing, for each precision its own") {
  make_later_algorithms_faster();
  std::vector<KernelChoice> recorded;
  {
    const auto device = open_gpu(KernelSelection::kTimed);
    static_cast<void>(prepare(*device, Precision::kFloat32, kManyFilters, 3));
    recorded = device->kernel_choices();
  }
  for (const KernelSelection kernels : {KernelSelection::kTimed, KernelSelection::kFixed}) {
    cuda_stand_in::reset();
    const auto device = open_gpu(kernels, recorded);
    static_cast<void>(prepare(*device, Precision::kFloat32, kManyFilters, 3));
    CHECK(cuda_stand_in::calls("cudaEventCreate") == 0);
    const std::vector<KernelChoice> choices = device->kernel_choices();
    REQUIRE(choices.size() == recorded.size());
    for (std::size_t pass = 0; pass < choices.size(); ++pass) CHECK(to_text(choices[pass]) == to_text(recorded[pass]));
    static_cast<void>(prepare(*device, Precision::kTensorFloat32, kManyFilters, 3));
    const std::vector<KernelChoice> both = device->kernel_choices();
    REQUIRE(both.size() == 6);
    CHECK(both[3].answer == "WINOGRAD_NONFUSED, tensor cores");
  }
}

TEST_CASE("a recorded algorithm that cuDNN does not list is refused") {
  std::vector<KernelChoice> recorded;
  {
    const auto device = open_gpu();
    static_cast<void>(prepare(*device, Precision::kFloat32, kManyFilters, 3));
    recorded = device->kernel_choices();
  }
  recorded.at(1).answer = "ALGO_3, no tensor cores";
  const auto device = open_gpu(KernelSelection::kTimed, recorded);
  try {
    static_cast<void>(prepare(*device, Precision::kFloat32, kManyFilters, 3));
    FAIL("no error");
  } catch (const engine::Error& error) {
    CHECK(error.kind() == ErrorKind::kDevice);
    CHECK_THAT(error.what(), Contains("trying the weight gradient of a convolution") &&
                                 Contains("'ALGO_3, no tensor cores', but this program has 'WINOGRAD_NONFUSED, no "
                                          "tensor cores', "));
  }
}

TEST_CASE("a recorded algorithm that fails here is left for the rule's, if it may") {
  std::vector<KernelChoice> recorded;
  {
    const auto device = open_gpu();
    static_cast<void>(prepare(*device, Precision::kFloat32, kManyFilters, 3));
    recorded = device->kernel_choices();
  }
  recorded.at(0).answer = "IMPLICIT_GEMM, no tensor cores";
  const auto device = engine::open_device(engine::parse_device("cuda:0"),
                                          {.recorded_kernels = recorded, .keeps_recorded_kernels = false});
  cuda_stand_in::fail_next("cudnnConvolutionForward", CUDNN_STATUS_EXECUTION_FAILED);
  static_cast<void>(prepare(*device, Precision::kFloat32, kManyFilters, 3));
  CHECK(device->kernel_choices().at(0).answer == "WINOGRAD_NONFUSED, no tensor cores");
  CHECK_THAT(device->kernel_choices().at(0).note, Contains("IMPLICIT_GEMM, no tensor cores failed ("));
}

TEST_CASE("an algorithm that fails while it is timed is left out, and the choice says so") {
  make_later_algorithms_faster();
  const auto device = open_gpu(KernelSelection::kTimed);
  constexpr int kAfterTrial = 1;  // the first algorithm's first run in the timing
  cuda_stand_in::fail_next("cudnnConvolutionForward", CUDNN_STATUS_EXECUTION_FAILED, kAfterTrial);
  static_cast<void>(prepare(*device, Precision::kFloat32, kManyFilters, 3));
  const KernelChoice choice = device->kernel_choices().at(0);
  CHECK(choice.answer == "IMPLICIT_GEMM, no tensor cores");
  CHECK(choice.candidates.size() == 2);
  CHECK_THAT(choice.note, Contains("WINOGRAD_NONFUSED, no tensor cores failed (") && Contains("CUDNN_STATUS_"));
}

TEST_CASE("padding on one side only is part of a pass's question") {
  const auto device = open_gpu();
  engine::Conv2dSpec padded = small_convolution(*device, kManyFilters, 3);
  padded.window.padding = {0, 0};
  padded.window.stride = {2, 2};
  engine::Conv2dSpec plain = padded;
  padded.window.extra_padding = {1, 1};
  static_cast<void>(device->prepare(padded, {.precision = Precision::kFloat32}));
  static_cast<void>(device->prepare(plain, {.precision = Precision::kFloat32}));
  const std::vector<std::string> choices = choices_of(*device);
  REQUIRE(choices.size() == 6);
  CHECK_THAT(choices[0], Contains("input 2x3x7x6"));
  CHECK_THAT(choices[3], Contains("input 2x3x6x5"));
}

TEST_CASE("if memory is short for timing only, the rule's algorithm is taken and the choice says so") {
  int short_trials = 0;
  for (int passing = 4;; ++passing) {  // the first four are the first trial's
    CAPTURE(passing);
    cuda_stand_in::reset();
    make_later_algorithms_faster();
    const auto device = open_gpu(KernelSelection::kTimed);
    cuda_stand_in::fail_next("cudaMallocAsync", cudaErrorMemoryAllocation, passing);
    static_cast<void>(prepare(*device, Precision::kFloat32, kManyFilters, 3));
    const KernelChoice choice = device->kernel_choices().at(0);
    if (choice.note == "workspace 0 bytes") break;
    ++short_trials;
    CHECK(choice.answer == "WINOGRAD_NONFUSED, no tensor cores");
    CHECK_THAT(choice.note, Contains("; not timed, because memory for a trial was short"));
    CHECK(choice.candidates.empty());
  }
  CHECK(short_trials >= 3);  // the stream's memory, and the workspaces of the other algorithms
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
                                 Contains("IMPLICIT_PRECOMP_GEMM, no tensor cores failed") &&
                                 Contains("IMPLICIT_GEMM, no tensor cores failed"));
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
