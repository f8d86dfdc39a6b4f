#include "arbalest/model.h"

#include <bit>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "api/throwing.h"
#include "dataflow/input/example.h"
#include "engine/backends/devices.h"
#include "engine/base/error.h"
#include "engine/base/nearest_name.h"
#include "options/loading/evaluation_job.h"
#include "predict/described_model.h"
#include "predict/memory_input.h"
#include "predict/prediction_input.h"
#include "predict/predictor.h"
#include "report/reopen/chosen_model.h"
#include "saved_model/run_files.h"

namespace arbalest {

namespace {

ModelInput public_input(const jobs::ModelDescription& description) {
  using Input = jobs::ModelDescription::Input;
  ModelInput input;
  input.kind = description.input == Input::kImage     ? InputKind::kImage
               : description.input == Input::kNumbers ? InputKind::kNumbers
                                                      : InputKind::kIds;
  input.shape.assign(description.shape.begin(), description.shape.end());
  input.mean = description.normalization.mean;
  input.stddev = description.normalization.stddev;
  return input;
}

Weights weights_of(const dataflow::NamedTensor& tensor) {
  return {tensor.name, {tensor.shape.begin(), tensor.shape.end()}, tensor.values};
}

jobs::DescribedModel read_model(const std::string& given, const ModelOptions& options,
                                std::vector<std::string>& warnings) {
  const std::filesystem::path run = jobs::find_run(given);
  const jobs::JobOptions job = jobs::load_for_evaluation((run / jobs::kJobFile).string(), options.devices);
  warnings.insert(warnings.end(), job.warnings.begin(), job.warnings.end());
  return jobs::read_chosen(
      run, options.checkpoint, [&](const std::string& text) { warnings.push_back(text); },
      [&](const jobs::ChosenModel& chosen) { return jobs::read_described_model(job, chosen.path, chosen.sha256); });
}

}  // namespace

class Model::Implementation {
 public:
  Implementation(const std::string& run, const ModelOptions& options)
      : model_(read_model(run, options, warnings_)), input_(public_input(model_.description)) {
    warnings_.insert(warnings_.end(), model_.warnings.begin(), model_.warnings.end());
    for (std::int64_t output = 0; output < model_.description.outputs; ++output) {
      labels_.push_back(model_.description.label(output));
    }
  }

  const jobs::ModelDescription& description() const noexcept { return model_.description; }
  const ModelInput& input() const noexcept { return input_; }
  const std::vector<std::string>& labels() const noexcept { return labels_; }
  const std::vector<std::string>& warnings() const noexcept { return warnings_; }
  std::span<const dataflow::NamedTensor> tensors() const noexcept { return model_.tensors; }

  std::vector<Prediction> predict(const jobs::PredictionInput& input, int top) {
    if (top < 1) engine::fail(engine::ErrorKind::kUsage, "top is {}; at least 1 class must be asked for", top);
    std::vector<Prediction> predictions;
    const std::int64_t examples = input.data->size();
    if (examples == 0) return predictions;
    predictions.reserve(static_cast<std::size_t>(examples));
    if (examples == 1) {
      predictions.push_back(predict_one(*input.data, top));
    } else {
      prepared_for(examples).predict(*input.data, top,
                                     [&](std::int64_t /*example*/, const jobs::Prediction& prediction) {
                                       predictions.push_back(named(prediction));
                                       return true;
                                     });
    }
    add_warnings(*input.data);
    return predictions;
  }

 private:
  // Answers sooner than a mini-batch would.
  Prediction predict_one(const jobs::TolerantDataset& data, int top) {
    const dataflow::Example example(jobs::input_of(model_.description));
    data.read(0, {}, example.features());
    if (std::string error = data.take_error(0); !error.empty()) return {.error = std::move(error)};
    if (!single_) single_.emplace(model_.job, model_.tensors, engine::core_count(model_.job.devices.front()));
    return named(single_->predict(example.features(), top));
  }

  // Adds what the images have shown, once.
  void add_warnings(const dataflow::Dataset& data) {
    for (std::string& text : data.warnings()) {
      if (std::ranges::find(warnings_, text) == warnings_.end()) warnings_.push_back(std::move(text));
    }
  }

  // The mini-batches of a number of examples suit all numbers up to the next power of two.
  jobs::BatchPredictor& prepared_for(std::int64_t examples) {
    const std::uint64_t size = std::bit_ceil(static_cast<std::uint64_t>(examples));
    if (size == prepared_size_) return *batches_;
    prepared_size_ = 0;
    batches_.reset();  // frees its memory before more is taken
    batches_ = std::make_unique<jobs::BatchPredictor>(model_.job, model_.tensors, static_cast<std::int64_t>(size));
    prepared_size_ = size;
    return *batches_;
  }

  Prediction named(const jobs::Prediction& prediction) const {
    Prediction result{.score = prediction.score, .error = prediction.error};
    for (const jobs::Prediction::Choice& choice : prediction.top) {
      result.top.push_back({choice.output, labels_[static_cast<std::size_t>(choice.output)], choice.probability});
    }
    return result;
  }

  std::vector<std::string> warnings_;
  jobs::DescribedModel model_;
  ModelInput input_;
  std::vector<std::string> labels_;
  std::optional<jobs::SinglePredictor> single_;
  std::unique_ptr<jobs::BatchPredictor> batches_;
  std::uint64_t prepared_size_ = 0;  // of batches_; 0: there are none
};

Model::Model(const std::string& run, const ModelOptions& options)
    : implementation_(throwing_public_errors([&] { return std::make_unique<Implementation>(run, options); })) {}
Model::~Model() = default;
Model::Model(Model&& other) noexcept = default;
Model& Model::operator=(Model&& other) noexcept = default;

const ModelInput& Model::input() const noexcept { return implementation_->input(); }
const std::vector<std::string>& Model::labels() const noexcept { return implementation_->labels(); }
const std::vector<std::string>& Model::warnings() const noexcept { return implementation_->warnings(); }

std::vector<Prediction> Model::predict(std::span<const std::uint8_t> examples, int top) {
  return throwing_public_errors(
      [&] { return implementation_->predict(jobs::open_memory(implementation_->description(), examples), top); });
}

std::vector<Prediction> Model::predict(std::span<const float> examples, int top) {
  return throwing_public_errors(
      [&] { return implementation_->predict(jobs::open_memory(implementation_->description(), examples), top); });
}

std::vector<Prediction> Model::predict(std::span<const std::int32_t> examples, int top) {
  return throwing_public_errors(
      [&] { return implementation_->predict(jobs::open_memory(implementation_->description(), examples), top); });
}

std::vector<Prediction> Model::predict_files(std::span<const std::string> files, int top) {
  return throwing_public_errors([&] {
    std::vector<std::string> paths(files.begin(), files.end());
    return implementation_->predict(jobs::open_files(implementation_->description(), std::move(paths)), top);
  });
}

std::vector<Weights> Model::weights() const {
  return throwing_public_errors([&] {
    std::vector<Weights> all;
    for (const dataflow::NamedTensor& tensor : implementation_->tensors()) all.push_back(weights_of(tensor));
    return all;
  });
}

Weights Model::weights(std::string_view name) const {
  return throwing_public_errors([&] {
    std::vector<std::string> names;
    for (const dataflow::NamedTensor& tensor : implementation_->tensors()) {
      if (tensor.name == name) return weights_of(tensor);
      names.push_back(tensor.name);
    }
    engine::fail(engine::ErrorKind::kUsage, "the model has no tensor '{}'{}", name, engine::did_you_mean(name, names));
  });
}

}  // namespace arbalest
