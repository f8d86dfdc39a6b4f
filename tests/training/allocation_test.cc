// In steady state our code makes no heap allocation in a round. This program replaces operator new and malloc and
// counts calls in the scheduler's thread, and in stream threads while a task runs. It recognizes oneDNN's own calls by
// their return address.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "dataflow/layers/activation.h"
#include "dataflow/layers/batch_norm.h"
#include "dataflow/layers/dropout.h"
#include "dataflow/layers/images/conv2d.h"
#include "engine/cpu/winograd/convolution.h"
#include "engine/host/topology.h"
#include "engine/stream_observer.h"
#include "tests/support/catch.h"
#include "tests/support/sanitized.h"
#include "tests/support/skip.h"
#include "tests/support/training_rig.h"
#include "tests/support/zoo_layers.h"

// glibc's functions, under the names that a program may not replace.
extern "C" void* __libc_malloc(std::size_t bytes);
extern "C" void* __libc_calloc(std::size_t count, std::size_t bytes);
extern "C" void* __libc_realloc(void* memory, std::size_t bytes);
extern "C" void* __libc_memalign(std::size_t alignment, std::size_t bytes);

namespace {

std::atomic<long> allocations_of_ours{0};
std::atomic<long> allocations_of_onednn{0};
std::atomic<long> tasks_counted{0};  // tasks of all streams
std::atomic<bool> counting{false};
thread_local bool in_step = false;

bool from_onednn(void* address) {
  Dl_info caller{};
  if (dladdr(address, &caller) == 0 || caller.dli_fname == nullptr) return false;
  const std::string_view library = caller.dli_fname;
  return library.find("libdnnl") != library.npos || library.find("libgomp") != library.npos;
}

void count(void* caller) {
  if (in_step && counting) ++(from_onednn(caller) ? allocations_of_onednn : allocations_of_ours);
}

// A sanitizer needs its own malloc, so then only calls of operator new are counted.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
void* allocate_uncounted(std::size_t bytes) { return std::malloc(bytes); }
#else
void* allocate_uncounted(std::size_t bytes) { return __libc_malloc(bytes); }
#endif

void* counted(std::size_t bytes, void* caller) {
  count(caller);
  void* memory = allocate_uncounted(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

// Marks the time in which a stream thread runs a task.
class StepMarker final : public arbalest::engine::StreamObserver {
 public:
  void before_task(const arbalest::engine::Stream&, const arbalest::engine::TaskInfo&) override {
    in_step = true;
    if (counting) ++tasks_counted;
  }
  void after_task(const arbalest::engine::Stream&, const arbalest::engine::TaskInfo&) override { in_step = false; }
};

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes, __builtin_return_address(0)); }
void* operator new[](std::size_t bytes) { return counted(bytes, __builtin_return_address(0)); }
// AddressSanitizer's own operator new would not match the deletes below.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return counted(bytes, __builtin_return_address(0));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" void* malloc(std::size_t bytes) {
  count(__builtin_return_address(0));
  return __libc_malloc(bytes);
}
extern "C" void* calloc(std::size_t number, std::size_t bytes) {
  count(__builtin_return_address(0));
  return __libc_calloc(number, bytes);
}
extern "C" void* realloc(void* memory, std::size_t bytes) {
  count(__builtin_return_address(0));
  return __libc_realloc(memory, bytes);
}
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  count(__builtin_return_address(0));
  return __libc_memalign(alignment, bytes);
}
extern "C" int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  count(__builtin_return_address(0));
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}
#endif

namespace {

using namespace arbalest;

// Counts the allocations of `rounds()`.
template <typename Rounds>
void check_allocates_nothing(const Rounds& rounds) {
  allocations_of_ours = allocations_of_onednn = tasks_counted = 0;
  counting = in_step = true;
  rounds();
  counting = in_step = false;
  INFO("oneDNN allocated " << allocations_of_onednn << " times");
  CHECK(allocations_of_ours == 0);

  // Deliberate allocations show that the counter works.
  const auto are_seen = [](const auto& allocate) {
    allocations_of_ours = 0;
    counting = in_step = true;
    allocate();
    counting = in_step = false;
    return allocations_of_ours > 0;
  };
  CHECK(are_seen([] { delete new std::string(100, 'x'); }));
  if (!tests::kSanitized) CHECK(are_seen([] { std::free(std::aligned_alloc(64, 64)); }));
}

// Two convolutions with batch norm. With 16 examples bfloat16 images have their examples in lanes, and the second
// convolution is Winograd's.
std::vector<dataflow::LayerDescription> normalized_network() {
  dataflow::Conv2dLayer::Options conv;
  conv.filters = 16;
  conv.window = {{3, 3}, {1, 1}, {1, 1}};
  conv.has_bias = false;
  const auto norm = std::make_shared<dataflow::BatchNormLayer>(dataflow::BatchNormLayer::Options{});
  const auto relu = std::make_shared<dataflow::ActivationLayer>(engine::ActivationKind::kRelu);
  return {{"conv1", {"image"}, std::make_shared<dataflow::Conv2dLayer>(conv)},
          {"norm1", {"conv1"}, norm},
          {"relu1", {"norm1"}, relu},
          {"conv2", {"relu1"}, std::make_shared<dataflow::Conv2dLayer>(conv)},
          {"norm2", {"conv2"}, norm},
          {"relu2", {"norm2"}, relu},
          {"dropout", {"relu2"}, std::make_shared<dataflow::DropoutLayer>(0.3F)},
          {"logits", {"dropout"}, tests::dense_layer(3)},
          {"loss", {"logits", "label"}, std::make_shared<dataflow::SoftmaxCrossEntropyLayer>()}};
}

tests::RigOptions lenet_options(std::int64_t batch) {
  tests::RigOptions options;
  options.layers = tests::lenet();
  options.image = {1, 28, 28};
  options.classes = 10;
  options.batch = batch;
  options.clip_gradient_norm = 1.0F;
  return options;
}

tests::RigOptions normalized_options(engine::Precision precision) {
  tests::RigOptions options;
  options.layers = normalized_network();
  options.image = {3, 8, 8};
  options.batch = 16;
  options.precision = precision;
  return options;
}

}  // namespace

TEST_CASE("a round in steady state allocates nothing", "[allocation]") {
  const std::vector<tests::RigOptions> nets{lenet_options(4), lenet_options(16),
                                            normalized_options(engine::Precision::kFloat32),
                                            normalized_options(engine::Precision::kBFloat16)};
  tests::RigOptions options = nets[GENERATE(0U, 1U, 2U, 3U)];
  StepMarker marker;
  options.learners = {2};
  options.moving_average_epochs = GENERATE(0.0, 0.5);
  options.observer = &marker;
  options.input = GENERATE(tests::RigInput::kFloats, tests::RigInput::kResident);
  SECTION("on one device") {}
  SECTION("on two devices") {
    options.devices = tests::two_devices(engine::host::allowed_cores());
    if (options.devices.empty()) tests::skip_test("needs two cores");
    options.learners = {1, 1};
  }
  CAPTURE(options.layers.size(), options.batch, engine::to_string(options.precision), options.moving_average_epochs);
  tests::TrainingRig rig(options);
  rig.run(5);
  check_allocates_nothing([&] { rig.run(20); });
  CHECK(tasks_counted > 0);
}

// With AMX no layer takes these convolutions.
TEST_CASE("Winograd convolution allocates nothing", "[allocation]") {
  if (engine::cpu::bfloat16_lane_kernels() == nullptr) tests::skip_test("it takes a processor with avx512_bf16");
  const engine::Shape shape{16, 16, 8, 8};
  const auto device = engine::open_device(engine::parse_device("cpu"));
  const engine::cpu::WinogradConvolution convolution(shape, 16);
  const engine::cpu::WinogradWeightsGradient gradient(shape, 16);
  const auto images = [&] { return device->allocate(static_cast<std::size_t>(shape.elements()) * 2); };
  const auto floats = [&](std::int64_t count) { return device->allocate(static_cast<std::size_t>(count) * 4); };
  const engine::Buffer input = images();
  const engine::Buffer output = images();
  const engine::Buffer weights = floats(16 * 16 * 9);
  const engine::Buffer prepared = floats(convolution.weight_units());
  const engine::Buffer scratch = floats(std::max(convolution.scratch_units(), gradient.scratch_units()));
  check_allocates_nothing([&] {
    using engine::BFloat16;
    using engine::cpu::LaneUnit;
    convolution.prepare(weights.as<BFloat16>(), false, prepared.as<LaneUnit>());
    convolution.run(1, input.as<BFloat16>(), prepared.as<LaneUnit>(), nullptr, true, scratch.as<LaneUnit>(),
                    output.as<BFloat16>());
    gradient.run(1, input.as<BFloat16>(), output.as<BFloat16>(), scratch.as<LaneUnit>(), weights.as<float>(), nullptr);
  });
}
