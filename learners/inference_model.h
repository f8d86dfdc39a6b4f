// A model that is only run forward on one device: the plan and the weights, which any number of runners share.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "dataflow/folding/batch_norm_folding.h"
#include "dataflow/memory/plan.h"
#include "engine/buffer.h"
#include "engine/device.h"

namespace arbalest::learners {

class InferenceModel {
 public:
  struct Options {
    std::int64_t batch = 1;  // examples of a mini-batch
    int threads = 1;         // CPU: threads of each runner's stream
    engine::Precision precision = engine::Precision::kFloat32;
    std::string output = {};  // name of the layer whose output runners return; "": none
    // Batch norm may be folded into convolutions (dataflow/folding/batch_norm_folding.h), which changes the last bits
    // of the output. Excludes `parameters`.
    bool prediction = false;
    // Layouts of the weights, such as those of training, so that the bits are those of a learner's evaluation; null:
    // the operators choose.
    const dataflow::ParameterLayout* parameters = nullptr;
  };

  // Allocates the weights, which are zero. Throws ErrorKind::kInternal if the graph has no layer of the output's name,
  // or if the layer does not run at inference, and kOutOfMemory. `device` must outlive the model.
  InferenceModel(const dataflow::Graph& graph, engine::Device& device, const Options& options);

  // Sets the weights from a model in canonical order (ParameterLayout::from_canonical). Throws as that function does.
  // No runner may be at work.
  void load(std::span<const dataflow::NamedTensor> model);

  engine::Device& device() const noexcept { return device_; }
  const dataflow::Plan& plan() const noexcept { return plan_; }
  int threads() const noexcept { return threads_; }
  // Returns the device memory that one runner takes, with its stream.
  std::size_t runner_bytes() const {
    return plan_.arena_bytes() + device_.stream_bytes({.name = {}, .role = engine::StreamRole::kInference});
  }
  float* weights() const noexcept { return weights_.as<float>(); }
  // The weights as bfloat16; null unless the plan reads them.
  engine::BFloat16* rounded() const noexcept { return rounded_.as<engine::BFloat16>(); }

 private:
  engine::Device& device_;
  int threads_;
  std::optional<dataflow::BatchNormFolding> folding_;
  dataflow::Plan plan_;
  engine::Buffer weights_;  // float32 [elements of the plan's parameters]
  engine::Buffer rounded_;
};

}  // namespace arbalest::learners
