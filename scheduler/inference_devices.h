// Runs a model forward over the mini-batches of a ring, spread over runners on several devices. No gradient and no
// optimizer takes memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataflow/input/batches/batch_ring.h"
#include "engine/device.h"
#include "learners/inference_runner.h"

namespace arbalest::scheduler {

class InferenceDevices {
 public:
  struct Options {
    std::int64_t batch = 1;  // examples of a mini-batch
    engine::Precision precision = engine::Precision::kFloat32;
    std::string output = {};  // name of the layer whose output is returned; "": none
    bool prediction = false;  // as InferenceModel::Options::prediction; excludes `training_batch`
    // Mini-batch of the training whose layouts of weights are used. The bits are then those of the learners'
    // evaluation. None: the operators choose the layouts.
    std::optional<std::int64_t> training_batch = {};
  };

  // Makes `most_runners` runners on each device, between which its cores are divided, but no more than fit into its
  // memory. Throws kOutOfMemory if not even one does, and as InferenceModel does. The devices must outlive the devices.
  InferenceDevices(const dataflow::Graph& graph, std::span<const std::unique_ptr<engine::Device>> devices,
                   std::span<const int> most_runners, const Options& options);

  // Sets the weights from a model in canonical order. Throws as ParameterLayout::from_canonical does.
  void load(std::span<const dataflow::NamedTensor> model);

  // Called with each mini-batch in the order of their numbers, by one thread at a time. False: nothing more is wanted.
  using Take = std::function<bool(const dataflow::Batch& batch, const learners::InferenceRunner::Result& result)>;

  // Runs the mini-batches from the ring's start on. The ring must hold images or ids and be finite, and have more slots
  // than there are runners. Throws the first error of the ring, a runner or `take`. The ring cannot be used again.
  void run(dataflow::BatchRing& ring, const Take& take);

  int runners() const noexcept { return static_cast<int>(runners_.size()); }

 private:
  void add_device(const dataflow::Graph& graph, engine::Device& device, int most_runners, const Options& options,
                  const dataflow::ParameterLayout* layout);

  std::vector<std::unique_ptr<learners::InferenceModel>> models_;  // by device
  std::vector<std::unique_ptr<learners::InferenceRunner>> runners_;
};

}  // namespace arbalest::scheduler
