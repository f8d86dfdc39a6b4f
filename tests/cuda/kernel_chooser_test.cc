// The choice between our own kernels and those of libraries: by the rule, by time, or as recorded.
#include <optional>
#include <string>
#include <vector>

#include "engine/backends/devices.h"
#include "engine/base/error.h"
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

using engine::KernelChoice;
using engine::KernelSelection;

constexpr const char* kOwn = "own tiled product";
constexpr const char* kLibrary = "library";
constexpr const char* kGemm = "cublasGemmEx";
constexpr const char* kKernel = "cudaLaunchKernelEx";

std::unique_ptr<engine::Device> open_gpu(KernelSelection kernels, std::vector<KernelChoice> recorded = {}) {
  return engine::open_device(engine::parse_device("cuda:0"),
                             {.kernels = kernels, .recorded_kernels = std::move(recorded)});
}

// A dense layer without a bias: our kernels launch twice for a step, a library multiplies three times and launches
// nothing else. The rule prefers ours for `examples` of at most 128.
std::unique_ptr<engine::Operator> prepare(engine::Device& device, std::int64_t examples,
                                          const engine::PrepareOptions& options = {}) {
  return device.prepare(
      engine::DenseSpec{
          .input = device.plain_layout({examples, 8}, engine::DType::kFloat32), .units = 6, .bias = false},
      options);
}

std::unique_ptr<engine::Operator> prepare_convolution(engine::Device& device, std::int64_t filters) {
  return device.prepare(
      engine::Conv2dSpec{.input = device.plain_layout({2, 3, 6, 5}, engine::DType::kFloat32),
                         .filters = filters,
                         .window = {.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}, .dilation = {1, 1}}},
      {});
}

// Only our own kernels add to a gradient.
const char* kernels_of(const engine::Operator& op) { return op.traits().adds_to_gradient ? kOwn : kLibrary; }

std::uint64_t timed_events() { return cuda_stand_in::calls("cudaEventCreate"); }

KernelChoice only_choice_of(const engine::Device& device) {
  const std::vector<KernelChoice> choices = device.kernel_choices();
  REQUIRE(choices.size() == 1);
  return choices.front();
}

}  // namespace

TEST_CASE("the rule chooses without timing") {
  cuda_stand_in::set_time(kKernel, 1000.0);
  const auto device = open_gpu(KernelSelection::kFixed);
  CHECK(kernels_of(*prepare(*device, 128)) == std::string(kOwn));
  CHECK(only_choice_of(*device).answer == kOwn);
  CHECK(only_choice_of(*device).candidates.empty());
  CHECK(kernels_of(*prepare(*device, 129)) == std::string(kLibrary));
  CHECK(timed_events() == 0);
  CHECK(cuda_stand_in::calls("cudaGraphLaunch") == 0);
}

TEST_CASE("of timed kernels the fastest compute, within the rule's limits and beyond them") {
  for (const std::int64_t examples : {32, 200}) {
    for (const bool own_is_faster : {true, false}) {
      CAPTURE(examples, own_is_faster);
      cuda_stand_in::reset();
      cuda_stand_in::set_time(kGemm, own_is_faster ? 50.0 : 1.0);
      cuda_stand_in::set_time(kKernel, own_is_faster ? 1.0 : 50.0);
      const auto device = open_gpu(KernelSelection::kTimed);
      const auto op = prepare(*device, examples);
      const KernelChoice choice = only_choice_of(*device);
      CHECK(choice.answer == (own_is_faster ? kOwn : kLibrary));
      CHECK(choice.answer == kernels_of(*op));
      CHECK_THAT(choice.question,
                 ContainsSubstring("input " + std::to_string(examples) + "x8, 6 units, FP32, training, 1 replica"));
      REQUIRE(choice.candidates.size() == 2);
      for (const engine::KernelCandidate& candidate : choice.candidates) {
        CAPTURE(candidate.name);
        const bool is_own = candidate.name == kOwn;
        const double expected = is_own ? (own_is_faster ? 2.0 : 100.0) : (own_is_faster ? 150.0 : 3.0);
        CHECK(candidate.microseconds.value() == Approx(expected).epsilon(1e-3));
      }
    }
  }
}

TEST_CASE("convolutions of many filters may take our own kernels, if these are faster") {
  for (const char* pass :
       {"cudnnConvolutionForward", "cudnnConvolutionBackwardFilter", "cudnnConvolutionBackwardData"}) {
    cuda_stand_in::set_time(pass, 500.0);
  }
  cuda_stand_in::set_time(kKernel, 1.0);
  const auto device = open_gpu(KernelSelection::kTimed);
  CHECK(kernels_of(*prepare_convolution(*device, 80)) == std::string(kOwn));
  CHECK(kernels_of(*prepare_convolution(*device, 513)) == std::string(kLibrary));  // too many to be a candidate
  const auto fixed = open_gpu(KernelSelection::kFixed);
  CHECK(kernels_of(*prepare_convolution(*fixed, 80)) == std::string(kLibrary));
}

TEST_CASE("of equally fast kernels the rule's compute") {
  cuda_stand_in::set_time(kGemm, 2.0);
  cuda_stand_in::set_time(kKernel, 3.0);
  const auto device = open_gpu(KernelSelection::kTimed);
  CHECK(kernels_of(*prepare(*device, 32)) == std::string(kOwn));
  CHECK(kernels_of(*prepare(*device, 200)) == std::string(kLibrary));
  for (const KernelChoice& choice : device->kernel_choices()) {
    REQUIRE(choice.candidates.size() == 2);
    CHECK(choice.candidates[0].microseconds == choice.candidates[1].microseconds);
  }
}

TEST_CASE("an operator is timed once, for each mode and number of replicas in training") {
  const auto device = open_gpu(KernelSelection::kTimed);
  static_cast<void>(prepare(*device, 32));
  const std::uint64_t events = timed_events();
  CHECK(events > 0);
  static_cast<void>(prepare(*device, 32));
  CHECK(timed_events() == events);
  static_cast<void>(prepare(*device, 32, {.replicas = 5}));
  static_cast<void>(prepare(*device, 32, {.mode = engine::OperatorMode::kInference}));
  CHECK(timed_events() == 3 * events);
  const std::vector<KernelChoice> choices = device->kernel_choices();
  REQUIRE(choices.size() == 3);
  CHECK_THAT(choices[1].question, ContainsSubstring("training, 5 replicas"));
  CHECK_THAT(choices[2].question, ContainsSubstring("6 units, FP32, inference"));
  // A library is called for each replica, our kernels are launched once for all.
  const auto library = [](const KernelChoice& of) { return of.candidates[1].microseconds.value(); };
  CHECK(library(choices[1]) == Approx(5.0 * library(choices[0])));
  CHECK(choices[1].candidates[0].microseconds == choices[0].candidates[0].microseconds);
  CHECK(library(choices[2]) == Approx(static_cast<double>(cuda_stand_in::kMicrosecondsOfWork)).epsilon(1e-3));
}

TEST_CASE("a second device, which gets the first one's order of weights, has the first one's question") {
  const auto device = open_gpu(KernelSelection::kTimed);
  const engine::Conv2dSpec spec{.input = device->plain_layout({2, 16, 6, 5}, engine::DType::kBFloat16),
                                .filters = 16,
                                .window = {.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}, .dilation = {1, 1}}};
  const auto first = device->prepare(spec, {.precision = engine::Precision::kBFloat16});
  const std::uint64_t events = timed_events();
  const std::vector<engine::Layout> order = first->traits().parameters;
  static_cast<void>(device->prepare(spec, {.parameters = order, .precision = engine::Precision::kBFloat16}));
  CHECK(timed_events() == events);
  CHECK(device->kernel_choices().back().question.find("weights") == std::string::npos);
}

TEST_CASE("inputs of different types are different questions") {
  const auto device = open_gpu(KernelSelection::kFixed);
  for (const engine::DType dtype : {engine::DType::kFloat32, engine::DType::kBFloat16}) {
    static_cast<void>(
        device->prepare(engine::DenseSpec{.input = device->plain_layout({32, 8}, dtype), .units = 6},
                        {.mode = engine::OperatorMode::kInference, .precision = engine::Precision::kBFloat16}));
  }
  const std::vector<KernelChoice> choices = device->kernel_choices();
  REQUIRE(choices.size() == 2);
  CHECK_THAT(choices[0].question, ContainsSubstring("BF16, inference, float32 input"));
  CHECK(choices[1].question.find("float32") == std::string::npos);
}

TEST_CASE("recorded kernels that a device does not have are left, if it may") {
  const KernelChoice recorded{.question = "dense layer of input 32x8, 6 units, FP32, training, 1 replica",
                              .answer = "kernels of the future"};
  const auto device = engine::open_device(engine::parse_device("cuda:0"),
                                          {.recorded_kernels = {recorded}, .keeps_recorded_kernels = false});
  CHECK(kernels_of(*prepare(*device, 32)) == std::string(kOwn));
  CHECK(only_choice_of(*device).question == recorded.question);
  CHECK(only_choice_of(*device).answer == kOwn);
}

TEST_CASE("recorded choices are taken without timing") {
  cuda_stand_in::set_time(kGemm, 0.1);
  std::vector<KernelChoice> recorded;
  {
    const auto device = open_gpu(KernelSelection::kTimed);
    CHECK(kernels_of(*prepare(*device, 32)) == std::string(kLibrary));
    recorded = device->kernel_choices();
  }
  cuda_stand_in::reset();  // now our own kernels would be faster
  const auto check = [&](engine::Device& device) {
    CHECK(kernels_of(*prepare(device, 32)) == std::string(kLibrary));
    CHECK(timed_events() == 0);
    CHECK(to_text(only_choice_of(device)) == to_text(recorded.front()));  // with the times of then
  };
  for (const KernelSelection kernels : {KernelSelection::kTimed, KernelSelection::kFixed}) {
    check(*open_gpu(kernels, recorded));
  }
  const auto device = open_gpu(KernelSelection::kTimed);
  device->take_kernel_choices(recorded);
  check(*device);
}

TEST_CASE("recorded kernels that an operator does not have are refused") {
  std::vector<KernelChoice> recorded;
  {
    const auto device = open_gpu(KernelSelection::kFixed);
    static_cast<void>(prepare(*device, 32));
    recorded = device->kernel_choices();
  }
  recorded.front().answer = "kernels of the future";
  const auto device = open_gpu(KernelSelection::kTimed, recorded);
  try {
    static_cast<void>(prepare(*device, 32));
    FAIL("no error");
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kDevice);
    CHECK_THAT(error.what(), ContainsSubstring("dense layer of input 32x8, 6 units") &&
                                 ContainsSubstring("'kernels of the future'") &&
                                 ContainsSubstring("'own tiled product', 'library'"));
  }
}

TEST_CASE("if memory for a trial is short, the rule chooses and the choice says so") {
  int short_trials = 0;
  for (int passing = 0;; ++passing) {
    CAPTURE(passing);
    cuda_stand_in::reset();
    cuda_stand_in::set_time(kGemm, 0.1);
    const auto device = open_gpu(KernelSelection::kTimed);
    cuda_stand_in::fail_next("cudaMallocAsync", cudaErrorMemoryAllocation, passing);
    const auto op = prepare(*device, 32);
    const KernelChoice choice = only_choice_of(*device);
    if (choice.note.empty()) {
      CHECK(choice.answer == kLibrary);
      break;
    }
    ++short_trials;
    CHECK_THAT(choice.note, ContainsSubstring("memory"));
    CHECK(choice.answer == kOwn);
    CHECK(kernels_of(*op) == std::string(kOwn));
    CHECK(choice.candidates.empty());
  }
  CHECK(short_trials >= 4);  // operands of both candidates, and the stream's memory
}

TEST_CASE("a device that fails during a trial is a failed device") {
  engine::ErrorKind kind = engine::ErrorKind::kInternal;
  std::string message;
  {
    const auto device = open_gpu(KernelSelection::kTimed);
    constexpr int kLaterWork = 12;
    cuda_stand_in::fail_execution(cudaErrorIllegalAddress, kLaterWork);
    try {
      static_cast<void>(prepare(*device, 32));
    } catch (const engine::Error& error) {
      kind = error.kind();
      message = error.what();
    }
  }
  CHECK(kind == engine::ErrorKind::kDevice);
  CHECK_THAT(message, ContainsSubstring("timing kernels for 'dense layer of input 32x8") &&
                          ContainsSubstring("illegal memory access"));
  cuda_stand_in::reset();  // memory of a failed device cannot be freed
}

TEST_CASE("the stream of trials is gone once the device has other streams") {
  const auto device = open_gpu(KernelSelection::kTimed);
  static_cast<void>(prepare(*device, 32));
  CHECK(cuda_stand_in::calls("cublasDestroy") == 0);
  const auto stream = device->create_stream({.name = "learner 0"});
  CHECK(cuda_stand_in::calls("cublasDestroy") == 1);
}

}  // namespace arbalest::tests
