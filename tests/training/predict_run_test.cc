// Predictions of a saved model agree with its evaluation.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "dataflow/input/digits/digits.h"
#include "dataflow/input/example.h"
#include "dataflow/parameter_rules.h"
#include "engine/base/error.h"
#include "engine/host/pool.h"
#include "predict/described_model.h"
#include "predict/prediction_input.h"
#include "predict/predictor.h"
#include "saved_model/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/npy_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/whole_run.h"

namespace arbalest::tests {

namespace {

using Predictions = std::vector<jobs::Prediction>;

// The test set of the digits as an array, and its labels.
struct TestSet {
  std::string array;
  std::vector<std::int32_t> labels;
};
TestSet digits() {
  engine::host::Pool pool(2);
  const auto data = dataflow::load_digits(dataflow::Split::kTest, dataflow::digits_normalization(), pool);
  return {npy("|u1", std::to_string(data->size()) + ", 28, 28", bytes_of(data->pixels())), data->labels()};
}

Predictions predict(const jobs::DescribedModel& model, const jobs::TolerantDataset& data, int top) {
  jobs::BatchPredictor predictor(model.job, model.tensors, data.size());
  Predictions predictions;
  predictor.predict(data, top, [&](std::int64_t example, const jobs::Prediction& prediction) {
    CHECK(example == std::ssize(predictions));  // in order
    predictions.push_back(prediction);
    return true;
  });
  return predictions;
}

}  // namespace

TEST_CASE("the most probable class is right as often as the run reports, on any number of runners", "[training]") {
  const TemporaryDirectory directory;
  const jobs::JobOptions job =
      load("convnet-digits.txtpb",
           {"training.max_epochs=1", "training.target_accuracy=default", "learners.per_device.fixed=2", "devices=cpu"});
  const jobs::RunSummary summary = run(job, directory.path().string());
  const std::string file = (directory.path() / "model.safetensors").string();
  jobs::DescribedModel model = jobs::read_described_model(job, file, summary.model_sha256);
  CHECK(model.description.class_names.size() == 10);
  const TestSet set = digits();
  write_text(directory / "digits.npy", set.array);
  const jobs::PredictionInput input = jobs::open_inputs(model.description, {directory / "digits.npy"});
  Predictions first;
  for (const int runners : {1, 3}) {
    CAPTURE(runners);
    model.job.learners_per_device = {runners};
    const Predictions predictions = predict(model, *input.data, 6);
    REQUIRE(predictions.size() == set.labels.size());
    std::int64_t right = 0;
    std::int64_t right_top5 = 0;
    for (std::size_t i = 0; i < predictions.size(); ++i) {
      const auto& top = predictions[i].top;
      REQUIRE(top.size() == 6);
      right += top[0].output == set.labels[i] ? 1 : 0;
      right_top5 +=
          std::any_of(top.begin(), top.begin() + 5, [&](const auto& choice) { return choice.output == set.labels[i]; });
    }
    const auto count = static_cast<double>(set.labels.size());
    CHECK(static_cast<double>(right) / count == summary.test.value("accuracy").value());
    CHECK(static_cast<double>(right_top5) / count == summary.test.value("top5_accuracy").value());
    if (first.empty()) first = predictions;
    for (std::size_t i = 0; i < predictions.size(); ++i) CHECK(predictions[i].top[0] == first[i].top[0]);
  }

  // One at a time, to the same class with nearly the same probability.
  jobs::SinglePredictor single(model.job, model.tensors, 1);
  const dataflow::Example example(input.data->description());
  for (std::int64_t i = 0; i < 50; ++i) {
    input.data->read(i, {}, example.features());
    const jobs::Prediction::Choice choice = single.predict(example.features(), 1).top.front();
    const jobs::Prediction::Choice& expected = first[static_cast<std::size_t>(i)].top.front();
    CHECK(choice.output == expected.output);
    CHECK(choice.probability == Approx(expected.probability).epsilon(1e-4));
  }
}

TEST_CASE("predictions stop when nothing more is wanted, and pass on the error of their consumer", "[training]") {
  const jobs::JobOptions job = load("logistic-digits.txtpb", {"learners.per_device.fixed=3", "devices=cpu"});
  const TemporaryDirectory directory;
  std::vector<dataflow::NamedTensor> tensors;
  for (const dataflow::NamedParameter& parameter : dataflow::named_parameters(*job.graph)) {
    const auto elements = static_cast<std::size_t>(parameter.spec.shape.elements());
    tensors.push_back({parameter.name, parameter.spec.shape, std::vector<float>(elements, 0.5F)});
  }
  jobs::write_safetensors(directory / "old.safetensors", tensors, {{"format", "arbalest"}});
  const std::string old = (directory / "old.safetensors").string();
  const jobs::DescribedModel model = jobs::read_described_model(job, old, "");  // a version without descriptions
  CHECK(model.description.label(4) == "4");
  CHECK(model.description.resize == 28);
  write_text(directory / "digits.npy", digits().array);
  const jobs::PredictionInput input = jobs::open_inputs(model.description, {directory / "digits.npy"});
  for (const bool throws : {false, true}) {
    jobs::BatchPredictor predictor(model.job, model.tensors, input.data->size());
    std::int64_t taken = 0;
    const auto take = [&](std::int64_t, const jobs::Prediction&) {
      if (++taken < 1000) return true;
      if (throws) throw engine::Error(engine::ErrorKind::kOutOfMemory, "no space");
      return false;
    };
    if (throws) {
      CHECK_THROWS_WITH(predictor.predict(*input.data, 1, take), "no space");
    } else {
      predictor.predict(*input.data, 1, take);
    }
    CHECK(taken == 1000);
  }

  jobs::Metadata other = jobs::to_metadata(model.description);
  other["outputs"] = "11";
  other.erase("class_names");
  jobs::write_safetensors(directory / "other.safetensors", tensors, other);
  CHECK_THROWS_WITH(jobs::read_described_model(job, (directory / "other.safetensors").string(), ""),
                    ContainsSubstring("does not match the run's job.txtpb"));
  tensors.front().shape = {3, 3};
  tensors.front().values.resize(9);
  CHECK_THROWS_WITH(jobs::BatchPredictor(job, tensors, 1), ContainsSubstring("does not fit the run's job"));
}

TEST_CASE("a model of ratings scores rows of ids", "[training]") {
  const jobs::JobOptions job = parse(
      "model { zoo { matrix_factorization { width: 2 } } } data { ratings { directory: \"none\" sizes: 3 sizes: 2 } "
      "} "
      "learning_rate { base: 0.1 } learners { per_device { fixed: 1 } } devices: \"cpu\"");
  std::vector<dataflow::NamedTensor> tensors;
  for (const dataflow::NamedParameter& parameter : dataflow::named_parameters(*job.graph)) {
    dataflow::NamedTensor tensor{parameter.name, parameter.spec.shape, {}};
    for (std::int64_t i = 0; i < tensor.shape.elements(); ++i) tensor.values.push_back(static_cast<float>(i + 1));
    tensors.push_back(tensor);
  }
  const TemporaryDirectory directory;
  jobs::write_safetensors(directory / "model.safetensors", tensors, {});
  const jobs::DescribedModel model = jobs::read_described_model(job, (directory / "model.safetensors").string(), "");
  write_text(directory / "ids.npy", npy("<i4", "2, 2", bytes_of(std::vector<std::int32_t>{0, 1, 2, 1})));
  const jobs::PredictionInput input = jobs::open_inputs(model.description, {directory / "ids.npy"});
  const Predictions predictions = predict(model, *input.data, 1);
  REQUIRE(predictions.size() == 2);
  // Each score adds the product of the vectors of user 0 or 2 and item 1, the mean 1, and their biases.
  CHECK(predictions[0].score == 1.0F * 3.0F + 2.0F * 4.0F + 1.0F + 1.0F + 2.0F);
  CHECK(predictions[1].score == 5.0F * 3.0F + 6.0F * 4.0F + 1.0F + 3.0F + 2.0F);
  CHECK(predictions[0].top.empty());
  write_text(directory / "far.npy", npy("<i4", "1, 2", bytes_of(std::vector<std::int32_t>{3, 0})));
  const jobs::PredictionInput far = jobs::open_inputs(model.description, {directory / "far.npy"});
  CHECK_THAT(predict(model, *far.data, 1).at(0).error, ContainsSubstring("id 3 is not in [0, 3)"));
  CHECK_THROWS_WITH(jobs::open_files(model.description, {"a.png"}), ContainsSubstring("reads ids, no image files"));
}

}  // namespace arbalest::tests
