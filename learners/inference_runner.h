// Runs the forward pass of a model on one device and returns the output of a layer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dataflow/input/batches/batch_ring.h"
#include "dataflow/plan.h"
#include "engine/device.h"

namespace arbalest::learners {

class InferenceRunner {
 public:
  struct Options {
    std::int64_t batch = 1;  // examples of a mini-batch
    int threads = 1;         // CPU: threads of the stream
    engine::Precision precision = engine::Precision::kFloat32;
    std::string output;  // name of the layer whose output is returned
  };

  // Allocates the device's memory; the weights are zero. Throws ErrorKind::kInternal if the graph has no layer of that
  // name, or if the layer does not run at inference, and kOutOfMemory. `device` must outlive the runner.
  InferenceRunner(const dataflow::Graph& graph, engine::Device& device, const Options& options);

  // Sets the weights from a model in canonical order (ParameterLayout::from_canonical). Throws as that function does.
  void load(std::span<const dataflow::NamedTensor> model);

  // Runs the forward pass over the images of `batch`, which must hold images or ids and not only indices. Blocks the
  // host. Returns the layer's output in canonical order as float32, [batch, ...] with the shape output_shape(); valid
  // until the next call. The rows of places without an example mean nothing.
  std::span<const float> run(const dataflow::Batch& batch);

  const engine::Shape& output_shape() const noexcept { return output_.layout.shape(); }

 private:
  engine::Device& device_;
  dataflow::Plan plan_;
  dataflow::Plan::Output output_;
  engine::Buffer weights_;  // float32 [elements of the plan's parameters]
  engine::Buffer rounded_;  // the weights as bfloat16; empty unless the plan reads them
  engine::Buffer arena_;
  engine::Buffer step_;
  engine::Buffer result_;
  std::unique_ptr<engine::Stream> stream_;
  std::unique_ptr<engine::TaskGraph> forward_;
  std::vector<float> values_;  // the output of the last run()
};

}  // namespace arbalest::learners
