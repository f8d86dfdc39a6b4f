// The description of a model: what to_metadata() writes, description_in() reads back, and refuses if it is damaged.
#include "saved_model/model_description.h"

#include <string>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "tests/jobs/job_text.h"
#include "train/weights/describe_model.h"

namespace arbalest::jobs {

namespace {

using Input = ModelDescription::Input;

ModelDescription of_images() {
  return {.job = "own",
          .input = Input::kImage,
          .shape = {3, 24, 32},
          .normalization = {{0.1F, 0.3F, 1.0F / 3.0F}, {0.25F}},
          .resize = 40,
          .outputs = 3,
          .class_names = {"cat \"tom\"", "chien été", "back\\slash"},
          .first_label = 1,
          .ids = {}};
}

// The error of reading the pairs with one of them replaced; "" as `value` removes the pair.
std::string refusal_of(const std::string& name, const std::string& value) {
  Metadata metadata = to_metadata(of_images());
  REQUIRE(metadata.contains(name));
  if (value.empty()) {
    metadata.erase(name);
  } else {
    metadata[name] = value;
  }
  try {
    description_in(metadata);
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kCheckpoint);
    return error.what();
  }
  FAIL("'" << name << "' was accepted as '" << value << "'");
  return "";
}

}  // namespace

TEST_CASE("the pairs of a description have these names and values") {
  CHECK(to_metadata(of_images()) == Metadata{{"format", "arbalest"},
                                             {"job", "own"},
                                             {"input", "image"},
                                             {"shape", "[3, 24, 32]"},
                                             {"colors", "RGB"},
                                             {"mean", "[0.1, 0.3, 0.33333334]"},
                                             {"stddev", "[0.25]"},
                                             {"resize", "40"},
                                             {"interpolation", "bilinear, antialiased"},
                                             {"crop", "center"},
                                             {"luma", "BT.601"},
                                             {"orientation", "applied"},
                                             {"jpeg", "whole"},
                                             {"outputs", "3"},
                                             {"first_label", "1"},
                                             {"class_names", R"(["cat \"tom\"","chien été","back\\slash"])"}});
}

TEST_CASE("a description is read back as it was written") {
  const ModelDescription images = of_images();
  const ModelDescription read = description_in(to_metadata(images)).value();
  CHECK(read == images);
  CHECK(read.class_names == images.class_names);
  CHECK(read.normalization.mean == images.normalization.mean);
  CHECK(read.resize == 40);
  const ModelDescription numbers{.job = "rows",
                                 .input = Input::kNumbers,
                                 .shape = {5, 1, 1},
                                 .normalization = {{-3.5F}, {1e-6F}},
                                 .resize = {},
                                 .outputs = 2,
                                 .class_names = {},
                                 .first_label = 0,
                                 .ids = {}};
  CHECK(description_in(to_metadata(numbers)).value() == numbers);
  CHECK_FALSE(to_metadata(numbers).contains("class_names"));
  const ModelDescription ids{.job = "films",
                             .input = Input::kIds,
                             .shape = {2},
                             .normalization = {},
                             .resize = {},
                             .outputs = 1,
                             .class_names = {},
                             .first_label = 0,
                             .ids = {943, 1682}};
  CHECK(description_in(to_metadata(ids)).value() == ids);
  CHECK(description_in(to_metadata(ids)).value().ids == ids.ids);
}

TEST_CASE("a description without pixel rules has those of older versions") {
  Metadata metadata = to_metadata(of_images());
  for (const char* name : {"luma", "orientation", "jpeg"}) CHECK(metadata.erase(name) == 1);
  const ModelDescription older = description_in(metadata).value();
  CHECK(older.pixels == dataflow::kUnrecordedRules);
  const Metadata recorded = to_metadata(older);
  CHECK(
      (recorded.at("luma") == "libpng" && recorded.at("orientation") == "ignored" && recorded.at("jpeg") == "reduced"));
  CHECK(description_in(recorded).value().pixels == dataflow::kUnrecordedRules);
  ModelDescription other = of_images();
  other.pixels = {.is_oriented = false, .is_reduced = true};
  CHECK(description_in(to_metadata(other)).value().pixels == other.pixels);
  other.shape = {5, 1, 1};  // no image file has five channels
  other.normalization = {{0.5F}, {0.25F}};
  CHECK_FALSE(to_metadata(other).contains("luma"));
}

TEST_CASE("an output without a name is named by the number of its class in the data") {
  ModelDescription description = of_images();
  CHECK(description.label(1) == "chien été");
  description.class_names.clear();
  CHECK(description.label(0) == "1");
  CHECK(description.label(2) == "3");
}

TEST_CASE("a file of an older version has no description") {
  CHECK_FALSE(description_in({{"format", "arbalest"}, {"job", "lenet"}}).has_value());
  CHECK_FALSE(description_in({}).has_value());
}

TEST_CASE("a damaged description is refused, and the error names the pair") {
  const std::vector<std::pair<std::string, std::string>> damages = {
      {"input", "picture"},
      {"shape", "[3, 24]"},
      {"shape", "[3, 24, 0]"},
      {"shape", "[3,"},
      {"shape", "[3, 24, 2.5]"},
      {"shape", "[9223372036854775807, 9223372036854775807, 2]"},
      {"shape", "[]"},
      {"shape", ""},
      {"mean", "[0.1, 0.2]"},
      {"mean", "[\"0.1\"]"},
      {"mean", "[1e99]"},
      {"mean", "0.5"},
      {"stddev", "[0]"},
      {"stddev", "[-1]"},
      {"stddev", ""},
      {"resize", "0"},
      {"resize", "40.5"},
      {"resize", "99999999999"},
      {"outputs", "\"3\""},
      {"outputs", "-3"},
      {"outputs", ""},
      {"outputs", "4"},
      {"class_names", "[1]"},
      {"class_names", "[\"a\", \"b\"]"},
      {"class_names", "cat"},
      {"class_names", R"(["a", "b", "a"])"},
      {"class_names", R"(["a", "b", "c\nd"])"},
      {"class_names", R"(["a", "b", ""])"},
      {"first_label", "[1]"},
      {"luma", "BT.709"},
      {"orientation", ""},
      {"jpeg", "half"},
      {"job", ""}};
  for (const auto& [name, value] : damages) {
    CAPTURE(name, value);
    const std::string text = refusal_of(name, value);
    CHECK_THAT(text, ContainsSubstring("description is damaged"));
    if (name != "outputs" || value != "4") CHECK_THAT(text, ContainsSubstring("'" + name + "'"));
  }
}

TEST_CASE("a job's data decides the description of its model") {
  const auto described = [](const std::string& data, std::string_view model = "model { zoo { lenet {} } }") {
    std::string text = changed("data { digits {} }", data);
    text.replace(text.find("model { zoo { lenet {} } }"), std::string("model { zoo { lenet {} } }").size(), model);
    return describe_model(parse(text), {});
  };
  const ModelDescription digits = described("data { digits {} }");
  CHECK(digits.job == "job");
  CHECK(digits.input == Input::kImage);
  CHECK(digits.resize == 28);  // its images all have this size, so images of other sizes are scaled to it
  CHECK(digits.outputs == 10);
  const std::string files = "images { directory: \"own\" classes: 7 decoding { height: 28 width: 28 ";
  CHECK(described("data { " + files + "} } }").resize == std::nullopt);
  CHECK(described("data { " + files + "resize: 40 } } }").resize == 40);
  const std::string npy = "data { npy { directory: \"own\" classes: 7 height: 28 width: ";
  CHECK(described(npy + "28 channels: 1 } }").resize == 28);
  CHECK(described(npy + "32 channels: 1 } }").resize == std::nullopt);
  CHECK(described(npy + "28 channels: 2 } }").resize == std::nullopt);
  const ModelDescription numbers = described(npy + "28 channels: 1 pixels: FLOAT32 } }");
  CHECK(numbers.input == Input::kNumbers);
  CHECK(numbers.resize == std::nullopt);
  const ModelDescription shards =
      described("data { tfrecord { directory: \"own\" classes: 5 first_label: 1 decoding { height: 28 width: 28 } } }");
  CHECK(shards.label(0) == "1");
  const ModelDescription ids = described("data { ratings { directory: \"own\" sizes: 5 sizes: 6 } }",
                                         "model { zoo { matrix_factorization {} } }");
  CHECK(ids.input == Input::kIds);
  CHECK(ids.ids == std::vector<std::int64_t>{5, 6});
  CHECK(ids.outputs == 1);
}

}  // namespace arbalest::jobs
