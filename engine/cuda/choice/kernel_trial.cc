#include "engine/cuda/choice/kernel_trial.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "engine/base/alignment.h"
#include "engine/cuda/runtime/check.h"
#include "engine/cuda/runtime/handle.h"
#include "engine/cuda/runtime/memory.h"

namespace arbalest::engine::cuda {

namespace {

constexpr int kRunsOfGraph = 4;  // so that the start of a graph counts little
constexpr int kWarmUps = 2;      // launches before the first that is timed
constexpr int kLaunches = 5;     // that are timed; odd
constexpr const char* kLabel = "kernel trial";

using TimedEvent = Handle<cudaEvent_t, cudaEventDestroy>;

TimedEvent make_event() {
  TimedEvent event;
  ARBALEST_CUDA(cudaEventCreate(event.put()));
  return event;
}

// The operands of all replicas, which lie in one piece of memory.
class Operands {
 public:
  Operands(const OperatorTraits& traits, const Layout& input, const PrepareOptions& options)
      : replicas_(options.replicas) {
    const bool trains = options.mode == OperatorMode::kTraining;
    const std::size_t at_input = take(input.bytes()), at_output = take(traits.output.bytes());
    const std::size_t at_saved = take(traits.saved_bytes), at_scratch = take(traits.scratch_bytes);
    const std::size_t at_output_gradient = trains ? take(traits.output.bytes()) : 0;
    const std::size_t at_input_gradient = options.wants_gradient(0) ? take(input.bytes()) : 0;
    std::vector<std::size_t> at_parameters, at_gradients;
    for (const Layout& parameter : traits.parameters) {
      at_parameters.push_back(take(parameter.bytes()));
      if (trains) at_gradients.push_back(take(parameter.bytes()));
    }
    memory_ = allocate_device(bytes_ * static_cast<std::size_t>(replicas_));
    inputs_ = {place(at_input)};
    output_ = place(at_output);
    saved_ = place(at_saved);
    scratch_ = place(at_scratch);
    output_gradient_ = place(at_output_gradient);
    input_gradients_ = {options.wants_gradient(0) ? place(at_input_gradient) : nullptr};
    for (const std::size_t at : at_parameters) parameters_.push_back(place(at));
    for (const std::size_t at : at_gradients) parameter_gradients_.push_back(place(at));
  }

  ReplicaMemory replicas() const { return {replicas_, {{memory_.data(), bytes_}}}; }

  ForwardOperands forward() const {
    return {.inputs = inputs_,
            .output = output_,
            .parameters = parameters_,
            .parameter_gradients = parameter_gradients_,
            .saved = saved_,
            .scratch = scratch_};
  }
  BackwardOperands backward() const {
    return {.inputs = inputs_,
            .output = output_,
            .output_gradient = output_gradient_,
            .input_gradients = input_gradients_,
            .parameters = parameters_,
            .parameter_gradients = parameter_gradients_,
            .saved = saved_,
            .scratch = scratch_};
  }

 private:
  std::size_t take(std::size_t bytes) {
    const std::size_t at = bytes_;
    bytes_ += aligned(bytes);
    return at;
  }
  void* place(std::size_t at) { return memory_.as<std::byte>() + at; }

  int replicas_;
  std::size_t bytes_ = 0;  // of a replica
  Buffer memory_;
  std::array<const void*, 1> inputs_{};
  void* output_ = nullptr;
  void* saved_ = nullptr;
  void* scratch_ = nullptr;
  void* output_gradient_ = nullptr;
  std::array<void*, 1> input_gradients_{};
  std::vector<const void*> parameters_;
  std::vector<void*> parameter_gradients_;
};

std::unique_ptr<TaskGraph> record(const std::function<void()>& submit, const ReplicaMemory& replicas,
                                  CudaStream& stream) {
  stream.begin_recording(replicas);
  for (int run = 0; run < kRunsOfGraph; ++run) submit();
  return stream.end_recording();
}

void mark(CudaStream& stream, cudaEvent_t event) {
  stream.submit(
      kLabel, [event](const StreamContext& context) { ARBALEST_CUDA(cudaEventRecord(event, context.stream.handle)); });
}

}  // namespace

double time_work(const std::function<void()>& submit, const ReplicaMemory& replicas, CudaStream& stream) {
  const std::unique_ptr<TaskGraph> graph = record(submit, replicas, stream);
  for (int launch = 0; launch < kWarmUps; ++launch) stream.launch(*graph, kLabel);
  std::array<TimedEvent, kLaunches + 1> events;  // before the first launch, and after each
  for (TimedEvent& event : events) event = make_event();
  mark(stream, events[0].get());
  for (std::size_t launch = 0; launch < kLaunches; ++launch) {
    stream.launch(*graph, kLabel);
    mark(stream, events[launch + 1].get());
  }
  stream.record().synchronize();
  std::array<float, kLaunches> milliseconds{};
  for (std::size_t launch = 0; launch < kLaunches; ++launch) {
    ARBALEST_CUDA(cudaEventElapsedTime(&milliseconds[launch], events[launch].get(), events[launch + 1].get()));
  }
  std::ranges::nth_element(milliseconds, milliseconds.begin() + kLaunches / 2);
  return 1e3 * static_cast<double>(milliseconds[kLaunches / 2]) / kRunsOfGraph;
}

double time_operator(const Operator& op, const Layout& input, const PrepareOptions& options, CudaStream& stream) {
  const Operands operands(op.traits(), input, options);
  const auto submit = [&] {
    op.forward(stream, kLabel, operands.forward());
    if (options.mode == OperatorMode::kTraining) op.backward(stream, kLabel, operands.backward());
  };
  return time_work(submit, operands.replicas(), stream);
}

}  // namespace arbalest::engine::cuda
