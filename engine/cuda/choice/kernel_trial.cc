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

// How long a trial is: for short work long enough that the start of a graph and a disturbance count little.
struct TrialLength {
  int runs;      // of the work in a graph
  int launches;  // that are timed; odd
};

TrialLength trial_length(double microseconds_of_run) {
  if (microseconds_of_run >= 20'000.0) return {1, 1};
  if (microseconds_of_run >= 2'000.0) return {1, 3};
  return {4, 5};
}

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

std::unique_ptr<TaskGraph> record(const std::function<void()>& submit, int runs, const ReplicaMemory& replicas,
                                  CudaStream& stream) {
  stream.begin_recording(replicas);
  for (int run = 0; run < runs; ++run) submit();
  return stream.end_recording();
}

void mark(CudaStream& stream, cudaEvent_t event) {
  stream.submit(
      kLabel, [event](const StreamContext& context) { ARBALEST_CUDA(cudaEventRecord(event, context.stream.handle)); });
}

// Median time of a launch, in microseconds, after one that is not timed.
double time_launches(const TaskGraph& graph, int launches, CudaStream& stream) {
  stream.launch(graph, kLabel);
  std::vector<TimedEvent> events;  // before the first launch, and after each
  for (int event = 0; event <= launches; ++event) events.push_back(make_event());
  mark(stream, events[0].get());
  for (std::size_t event = 1; event < events.size(); ++event) {
    stream.launch(graph, kLabel);
    mark(stream, events[event].get());
  }
  stream.record().synchronize();
  std::vector<float> milliseconds(events.size() - 1);
  for (std::size_t event = 1; event < events.size(); ++event) {
    ARBALEST_CUDA(cudaEventElapsedTime(&milliseconds[event - 1], events[event - 1].get(), events[event].get()));
  }
  const auto middle = milliseconds.begin() + launches / 2;
  std::ranges::nth_element(milliseconds, middle);
  return 1e3 * static_cast<double>(*middle);
}

}  // namespace

double time_work(const std::function<void()>& submit, const ReplicaMemory& replicas, CudaStream& stream) {
  const double first = time_launches(*record(submit, 1, replicas, stream), 1, stream);
  const TrialLength length = trial_length(first);
  if (length.launches == 1) return first;
  return time_launches(*record(submit, length.runs, replicas, stream), length.launches, stream) / length.runs;
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
