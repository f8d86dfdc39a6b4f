// Runs a saved model on examples without labels.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dataflow/input/batches/batch_memory.h"
#include "dataflow/parameter_layout.h"
#include "engine/backends/devices.h"
#include "engine/host/pool.h"
#include "learners/inference_runner.h"
#include "options/job_options.h"
#include "predict/prediction.h"
#include "predict/prediction_input.h"
#include "scheduler/inference_devices.h"

namespace arbalest::jobs {

// Predicts many examples in mini-batches, on all runners of the job's devices: as many as the job has learners there.
class BatchPredictor {
 public:
  // `examples`: how many will be predicted; few of them take small mini-batches. Throws kCheckpoint if the tensors do
  // not fit the job's model, and kOutOfMemory.
  BatchPredictor(const JobOptions& job, std::span<const dataflow::NamedTensor> model, std::int64_t examples);

  // Called for each example, in order, by one thread at a time. False: nothing more is wanted.
  using Take = std::function<bool(std::int64_t example, const Prediction& prediction)>;

  // Predicts every example. An unreadable one has an error instead of a prediction. `top`: most choices. Throws the
  // first error of `take`.
  void predict(const TolerantDataset& data, int top, const Take& take);

  std::int64_t batch() const noexcept { return batch_; }
  int runners() const noexcept { return inference_->runners(); }

 private:
  bool predicts_numbers_;
  std::int64_t batch_;
  engine::host::Pool pool_;
  std::vector<std::unique_ptr<engine::Device>> devices_;
  std::unique_ptr<scheduler::InferenceDevices> inference_;
};

// Predicts one example at a time on the first of the job's devices, for the shortest time to an answer.
class SinglePredictor {
 public:
  // `threads`: of a CPU device. Throws as BatchPredictor does.
  SinglePredictor(const JobOptions& job, std::span<const dataflow::NamedTensor> model, int threads);

  // `features`: of one example, as Dataset::read() writes them.
  Prediction predict(std::span<const dataflow::InputTensor> features, int top);

 private:
  bool predicts_numbers_;
  std::unique_ptr<engine::Device> device_;
  learners::InferenceModel model_;
  learners::InferenceRunner runner_;
  dataflow::BatchMemory memory_;  // for one example, with a label that is not used
};

}  // namespace arbalest::jobs
