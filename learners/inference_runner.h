// Runs the forward pass of a model on one stream of a device, one mini-batch at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "dataflow/input/batches/batch_ring.h"
#include "learners/inference_model.h"

namespace arbalest::learners {

class InferenceRunner {
 public:
  // `number`: the runner's number on its device; runners of different numbers use different cores, if the device has
  // enough. Allocates the device's memory for activations. Throws kOutOfMemory. `model` must outlive the runner.
  explicit InferenceRunner(const InferenceModel& model, int number = 0);

  struct Result {
    // The output of the model's layer in canonical order as float32, [batch, ...] with the shape output_shape(). The
    // rows of places without an example mean nothing. Empty if the model has no output.
    std::span<const float> output;
    engine::StepResult step;  // sums of the metrics, if the batch has labels
  };

  // Runs the forward pass over `batch`, which must hold tensors and not only indices. Blocks the host. The result is
  // valid until the next call.
  Result run(const dataflow::Batch& batch);

  // The model must have an output.
  const engine::Shape& output_shape() const { return model_.plan().output()->layout.shape(); }

 private:
  const InferenceModel& model_;
  engine::Buffer arena_;
  engine::Buffer step_;
  engine::Buffer result_;
  engine::Buffer host_result_;
  std::unique_ptr<engine::Stream> stream_;
  std::unique_ptr<engine::TaskGraph> forward_;
  engine::Layout plain_;      // canonical order of the output
  bool is_plain_ = false;     // whether the device keeps the output so
  std::size_t elements_ = 0;  // of the output
  engine::Buffer values_;     // host: the output of the last run()
};

}  // namespace arbalest::learners
