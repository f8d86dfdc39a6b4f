// Arrays that a model is asked about: rows that it cannot read are errors of their own.
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "dataflow/input/example.h"
#include "engine/base/error.h"
#include "predict/prediction_input.h"
#include "tests/support/catch.h"
#include "tests/support/npy_writer.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::jobs {

namespace {

using tests::bytes_of;
using tests::npy;
using tests::write_text;

ModelDescription of_numbers() {
  ModelDescription description;
  description.job = "rows";
  description.input = ModelDescription::Input::kNumbers;
  description.shape = {2, 1, 1};
  description.normalization = {{1.0F}, {2.0F}};
  description.outputs = 3;
  return description;
}

ModelDescription of_ids() {
  ModelDescription description;
  description.job = "films";
  description.input = ModelDescription::Input::kIds;
  description.shape = {2};
  description.ids = {5, 6};
  return description;
}

PredictionInput opened(const ModelDescription& description, const std::string& array) {
  const tests::TemporaryDirectory directory;
  write_text(directory / "rows.npy", array);
  return open_inputs(description, {directory / "rows.npy"});
}

std::string refusal(const ModelDescription& description, const std::string& array) {
  try {
    opened(description, array);
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kData);
    return error.what();
  }
  return "";
}

// Reads a row; returns its error.
std::string error_of(const PredictionInput& input, std::int64_t row, const dataflow::Example& example) {
  input.data->read(row, {}, example.features());
  return input.data->take_error(row);
}

}  // namespace

TEST_CASE("a row with a number that is not finite is an error, and the others are read") {
  const ModelDescription description = of_numbers();
  const dataflow::Example example(input_of(description));
  const std::vector<double> rows = {3.0, 5.0, 7.0, std::nan(""), 1e300, 1.0, 9.0, 11.0};
  for (const bool is_double : {false, true}) {
    CAPTURE(is_double);
    const std::string bytes = is_double ? bytes_of(rows) : bytes_of(std::vector<float>(rows.begin(), rows.end()));
    const PredictionInput input = opened(description, npy(is_double ? "<f8" : "<f4", "4, 2", bytes));
    REQUIRE(input.data->size() == 4);
    CHECK(error_of(input, 0, example).empty());
    CHECK(example.features().front().as<float>()[1] == 2.0F);  // (5 - 1) / 2
    CHECK_THAT(error_of(input, 1, example), ContainsSubstring("element 1 is not finite"));
    CHECK(example.features().front().as<float>()[1] == 0.0F);
    CHECK_THAT(error_of(input, 2, example), ContainsSubstring("element 0 is not finite"));
    CHECK(error_of(input, 3, example).empty());
  }
}

TEST_CASE("a row with an id that the model does not know is an error, and the others are read") {
  const ModelDescription description = of_ids();
  const dataflow::Example example(input_of(description));
  const PredictionInput input =
      opened(description, npy("<i8", "4, 2", bytes_of(std::vector<std::int64_t>{4, 5, 5, 0, 0, -1, 1, 2})));
  REQUIRE(input.data->size() == 4);
  CHECK(error_of(input, 0, example).empty());
  CHECK(example.features().front().as<std::int32_t>()[1] == 5);
  CHECK_THAT(error_of(input, 1, example), ContainsSubstring("column 0: id 5 is not in [0, 5)"));
  CHECK_THAT(error_of(input, 2, example), ContainsSubstring("column 1: id -1 is not in [0, 6)"));
  CHECK(error_of(input, 3, example).empty());
}

TEST_CASE("arrays that no model reads are refused without advice for a job") {
  const std::string four(16, '\0');
  for (const auto& [description, array] :
       std::vector<std::pair<ModelDescription, std::string>>{{of_numbers(), npy("<f4", "1, 4", four)},
                                                             {of_numbers(), npy("<f4", "", std::string(4, '\0'))},
                                                             {of_numbers(), npy("<i4", "2, 2", four)},
                                                             {of_numbers(), npy("|u1", "8, 2", four)},
                                                             {of_ids(), npy("<f4", "2, 2", four)},
                                                             {of_ids(), npy("<i4", "4", four)},
                                                             {of_ids(), npy("<i4", "1, 2, 2", four)}}) {
    const std::string text = refusal(description, array);
    CHECK_THAT(text, ContainsSubstring("rows.npy: ") && ContainsSubstring("but the model '" + description.job));
    CHECK_THAT(text, !ContainsSubstring("data.") && !ContainsSubstring("job"));
  }
  CHECK_THAT(refusal(of_ids(), npy("<i4", "9, 2", four)), ContainsSubstring("truncated"));
}

}  // namespace arbalest::jobs
