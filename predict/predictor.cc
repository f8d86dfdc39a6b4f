#include "predict/predictor.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "dataflow/input/batches/batch_order.h"
#include "dataflow/input/batches/batch_ring.h"
#include "engine/base/error.h"
#include "engine/host/topology.h"
#include "train/data/dataset_caching.h"
#include "train/weights/saved_model.h"

namespace arbalest::jobs {

namespace {

// `load` sets the weights of the job's model.
void load_fitting(const std::function<void()>& load) {
  try {
    load();
  } catch (const engine::Error& error) {
    throw engine::Error(error.kind(), fmt::format("the model does not fit the run's job: {}", error.what()));
  }
}

// A mini-batch is small enough that every runner has work. On a CPU larger ones than kMostOnCpu take more memory and
// are not faster (bench/results, "predict").
std::int64_t batch_for(const JobOptions& job, std::int64_t examples) {
  constexpr std::int64_t kMostOnCpu = 16;
  const auto runners = std::accumulate(job.learners_per_device.begin(), job.learners_per_device.end(), std::int64_t{0});
  const std::int64_t most = job.devices.front().is_cuda() ? evaluation_batch_size(job) : kMostOnCpu;
  return std::clamp((examples + runners - 1) / runners, std::int64_t{1}, most);
}

Prediction prediction_of(std::span<const float> output, bool is_number, int top) {
  return is_number ? score(output.front()) : classify(output, top);
}

}  // namespace

BatchPredictor::BatchPredictor(const JobOptions& job, std::span<const dataflow::NamedTensor> model,
                               std::int64_t examples)
    : predicts_numbers_(job.data.input.predicts_numbers()),
      batch_(batch_for(job, examples)),
      pool_(engine::host::usable_cores()) {
  for (const engine::DeviceSpec& spec : job.devices) devices_.push_back(engine::open_device(spec));
  inference_ = std::make_unique<scheduler::InferenceDevices>(
      *job.graph, devices_, job.learners_per_device,
      scheduler::InferenceDevices::Options{.batch = batch_,
                                           .precision = job.training.precision,
                                           .output = output_layer(*job.graph),
                                           .prediction = true});
  load_fitting([&] { inference_->load(model); });
}

void BatchPredictor::predict(const TolerantDataset& data, int top, const Take& take) {
  constexpr int kAhead = 2;  // mini-batches that are decoded ahead of each runner
  dataflow::SequentialOrder order(data.size(), batch_);
  const int slots = runners() * (1 + kAhead);
  dataflow::BatchRing ring(data, order, *devices_.front(), pool_, slots);
  inference_->run(ring, [&](const dataflow::Batch& batch, const learners::InferenceRunner::Result& result) {
    const std::size_t outputs = result.output.size() / static_cast<std::size_t>(batch_);
    for (std::size_t row = 0; row < static_cast<std::size_t>(batch_); ++row) {
      const std::int64_t example = batch.indices[row];
      if (example == dataflow::BatchOrder::kNoExample) continue;
      Prediction prediction;
      prediction.error = data.take_error(example);
      if (prediction.error.empty()) {
        prediction = prediction_of(result.output.subspan(row * outputs, outputs), predicts_numbers_, top);
      }
      if (!take(example, prediction)) return false;
    }
    return true;
  });
}

SinglePredictor::SinglePredictor(const JobOptions& job, std::span<const dataflow::NamedTensor> model, int threads)
    : predicts_numbers_(job.data.input.predicts_numbers()),
      device_(engine::open_device(job.devices.front())),
      model_(*job.graph, *device_,
             {.batch = 1,
              .threads = threads,
              .precision = job.training.precision,
              .output = output_layer(*job.graph),
              .prediction = true}),
      runner_(model_),
      memory_(job.data.input, 1, *device_) {
  load_fitting([&] { model_.load(model); });
  // Nobody knows the label, and the loss is not read.
  std::ranges::fill(memory_.batch().back().bytes(), std::byte{0});
}

Prediction SinglePredictor::predict(std::span<const dataflow::InputTensor> features, int top) {
  const std::span tensors = memory_.batch();
  ARBALEST_CHECK(features.size() + 1 == tensors.size());
  for (std::size_t f = 0; f < features.size(); ++f) {
    ARBALEST_CHECK(features[f].description() == tensors[f].description());
    std::ranges::copy(features[f].bytes(), tensors[f].bytes().data());
  }
  return prediction_of(runner_.run({.tensors = tensors, .examples = 1}).output, predicts_numbers_, top);
}

}  // namespace arbalest::jobs
