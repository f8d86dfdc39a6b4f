// Whole runs on rows of numbers from CSV files.
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "predict/prediction_input.h"
#include "saved_model/model_description.h"
#include "saved_model/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/whole_run.h"
#include "train/data/dataset_verification.h"

namespace arbalest::tests {

namespace {

// Three kinds of flowers whose petals differ; "sepal" says nothing. The columns are in this order: sepal, petal.
void write_flowers(const std::filesystem::path& file, int rows) {
  const std::vector<std::string> names{"tulip", "aster", "rose, red"};
  std::string text = "species,sepal,petal\n";
  for (int i = 0; i < rows; ++i) {
    text += fmt::format("\"{}\",{},{}\n", names[static_cast<std::size_t>(i % 3)], (i * 7 % 11) - 5,
                        100 * (i % 3) + i * 5 % 13);
  }
  write_text(file, text);
}

jobs::JobOptions flower_job(const TemporaryDirectory& directory, const std::string& more = "") {
  return parse(
      fmt::format("name: \"flowers\" model {{ zoo {{ logistic_regression {{}} }} }}\n"
                  "data {{ csv {{ directory: \"{}\" label: \"species\" features: 2 classes: 3 {} }}\n"
                  "normalization {{ mean: [0, 106] stddev: [3, 82] }} }}\n"
                  "training {{ batch_size: 10 max_epochs: 20 }} optimizer {{ sgd {{ momentum: 0.9 }} }}\n"
                  "learning_rate {{ base: 0.05 }} devices: \"cpu\"",
                  directory.path().string(), more));
}

}  // namespace

TEST_CASE("a linear model learns a CSV file, and the saved model has the names of its classes", "[training]") {
  const TemporaryDirectory directory;
  write_flowers(directory / "train.csv", 300);
  write_flowers(directory / "test.csv", 60);
  const std::filesystem::path output = directory / "run";
  std::filesystem::create_directories(output);
  const jobs::RunSummary summary = run(flower_job(directory), output.string());
  CHECK(summary.status == jobs::RunStatus::kCompleted);
  CHECK(summary.test.value("accuracy") == 1.0);
  const std::optional<jobs::ModelDescription> saved =
      jobs::description_in(jobs::read_safetensors_metadata(output / "model.safetensors"));
  REQUIRE(saved);
  CHECK(saved->input == jobs::ModelDescription::Input::kNumbers);
  CHECK(saved->shape == engine::Shape{2, 1, 1});
  CHECK(saved->class_names == std::vector<std::string>{"aster", "rose, red", "tulip"});
  CHECK_THROWS_WITH(jobs::open_inputs(*saved, {(directory / "test.csv").string()}), ContainsSubstring(".npy"));
}

TEST_CASE("a validation set is split off a CSV file, or has a file of its own", "[training]") {
  const TemporaryDirectory directory;
  write_flowers(directory / "train.csv", 300);
  write_flowers(directory / "test.csv", 60);
  write_flowers(directory / "own.csv", 30);
  jobs::JobOptions job = flower_job(directory, "} validation { fraction: 0.2");
  CHECK(run(job).validation.value("accuracy") == 1.0);
  job = flower_job(directory, "validation: \"own.csv\"");
  CHECK(run(job).validation.value("accuracy") == 1.0);
  CHECK_THROWS_WITH(flower_job(directory, "validation: \"./test.csv\""), ContainsSubstring("names the test set"));
}

TEST_CASE("a verified CSV file has the classes by name, and a broken one its line", "[training]") {
  const TemporaryDirectory directory;
  write_flowers(directory / "train.csv", 9);
  write_flowers(directory / "test.csv", 6);
  const jobs::JobOptions job = flower_job(directory);
  const jobs::DatasetVerification sound = jobs::verify_dataset(job, "");
  CHECK(sound.is_sound());
  CHECK(sound.classes.names == std::vector<std::string>{"aster", "rose, red", "tulip"});
  CHECK(sound.splits.at(0).examples_of_class == std::vector<std::int64_t>{3, 3, 3});
  write_text(directory / "test.csv", "species,sepal,petal\ntulip,1,x\n");
  CHECK_THROWS_WITH(jobs::verify_dataset(job, ""), ContainsSubstring("test.csv:2: column 'petal': 'x' is no number"));
}

}  // namespace arbalest::tests
