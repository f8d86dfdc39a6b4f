// arbalest::Model, as another program uses it.
#include <arbalest/error.h>
#include <arbalest/model.h>
#include <arbalest/training.h>

#include <cstdint>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/library/small_job.h"
#include "tests/support/catch.h"
#include "tests/support/image_writer.h"
#include "tests/support/npy_writer.h"
#include "tests/support/ratings_writer.h"
#include "tests/support/subprocess.h"

namespace arbalest::tests {
namespace {

using nlohmann::json;

constexpr std::size_t kPixels = 20;  // of an example: [1, 4, 5]

std::vector<std::uint8_t> bytes(std::size_t examples) {
  std::vector<std::uint8_t> pixels;
  for (std::size_t i = 0; i < examples * kPixels; ++i) pixels.push_back(static_cast<std::uint8_t>(37 * i));
  return pixels;
}

// The lines of `arbalest predict` for a file.
std::vector<json> program_says(const SmallJob& job, const std::string& file, std::vector<std::string> options = {}) {
  options.insert(options.begin(), {ARBALEST_PROGRAM, "predict", "run", file});
  const Completed done = Subprocess(options, {"PATH=/usr/bin:/bin"}, job / "").wait();
  INFO(done.err);
  REQUIRE(done.exit_code == 0);
  std::vector<json> lines;
  std::istringstream text(done.out);
  for (std::string line; std::getline(text, line);) lines.push_back(json::parse(line));
  return lines;
}

// Whether a prediction has the choices of a line of the program.
bool equals(const Prediction& prediction, const json& line) {
  const json& top = line["top"];
  bool equal = prediction.top.size() == top.size();
  for (std::size_t k = 0; equal && k < top.size(); ++k) {
    const Prediction::Choice& choice = prediction.top[k];
    equal = choice.label == top[k]["label"] && choice.output == top[k]["output"] &&
            choice.probability == top[k]["probability"].get<float>();
  }
  return equal;
}

template <typename Call>
std::pair<ErrorKind, std::string> error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  }
  FAIL("no error was thrown");
  throw std::logic_error("FAIL returned");
}

}  // namespace

TEST_CASE("library model: it predicts what the program predicts, of many examples and of one") {
  SmallJob job;
  train(job.options);
  Model model(job.run());
  CHECK(model.input().kind == InputKind::kImage);
  CHECK(model.input().shape == std::vector<std::int64_t>{1, 4, 5});
  CHECK(model.labels() == std::vector<std::string>{"0", "1", "2"});
  CHECK(model.warnings().empty());
  const std::vector<std::uint8_t> pixels = bytes(37);
  write_text(job / "x.npy", npy("|u1", "37, 1, 4, 5", bytes_of(pixels)));
  const std::vector<json> expected = program_says(job, "x.npy", {"--top", "2"});
  // Any number of examples, in any order of the calls.
  for (const std::size_t examples :
       {std::size_t{37}, std::size_t{5}, std::size_t{1}, std::size_t{2}, std::size_t{37}}) {
    CAPTURE(examples);
    const std::vector<Prediction> predictions =
        model.predict(std::span<const std::uint8_t>(pixels).first(examples * kPixels), 2);
    REQUIRE(predictions.size() == examples);
    for (std::size_t i = 0; i < examples; ++i) {
      REQUIRE(predictions[i].top.size() == 2);
      CHECK(predictions[i].error.empty());
      CHECK_FALSE(predictions[i].score);
      for (std::size_t k = 0; k < 2; ++k) {
        CHECK(predictions[i].top[k].label == expected[i]["top"][k]["label"]);
        CHECK(predictions[i].top[k].output == expected[i]["top"][k]["output"]);
        CHECK(predictions[i].top[k].probability == Approx(expected[i]["top"][k]["probability"].get<float>()));
      }
    }
  }
  CHECK(model.predict(std::span<const std::uint8_t>()).empty());
}

TEST_CASE("library model: floating-point pixels are bytes / 255") {
  SmallJob job;
  train(job.options);
  Model model(job.run());
  const std::vector<std::uint8_t> pixels = bytes(3);
  std::vector<float> fractions;
  for (const std::uint8_t pixel : pixels) fractions.push_back(static_cast<float>(pixel) / 255.0F);
  const std::vector<Prediction> of_bytes = model.predict(pixels);
  const std::vector<Prediction> of_fractions = model.predict(fractions);
  REQUIRE(of_fractions.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    REQUIRE(of_bytes[i].top.size() == 3);  // there are no more classes
    CHECK(of_fractions[i].top[0].output == of_bytes[i].top[0].output);
    CHECK(of_fractions[i].top[0].probability == Approx(of_bytes[i].top[0].probability));
  }
}

TEST_CASE("library model: a model of numbers reads numbers, and says so") {
  SmallJob job(/*floats=*/true);
  train(job.options);
  Model model(job.run());
  CHECK(model.input().kind == InputKind::kNumbers);
  std::vector<float> numbers;
  for (const std::uint8_t pixel : bytes(6)) numbers.push_back(pixel);
  write_text(job / "x.npy", npy("<f4", "6, 1, 4, 5", bytes_of(numbers)));
  const std::vector<json> expected = program_says(job, "x.npy");
  const std::vector<Prediction> predictions = model.predict(numbers);
  REQUIRE(predictions.size() == 6);
  for (std::size_t i = 0; i < 6; ++i) CHECK(equals(predictions[i], expected[i]));

  const auto [kind, message] = error_of([&] { model.predict(bytes(1)); });
  CHECK(kind == ErrorKind::kUsage);
  CHECK_THAT(message, ContainsSubstring("reads floating-point numbers, and bytes were given"));
  const std::vector<std::string> files{"a.png"};
  CHECK(error_of([&] { model.predict_files(files); }).first == ErrorKind::kUsage);
}

TEST_CASE("library model: a model of ratings predicts a number from ids") {
  SmallJob job;
  write_ratings(job / "ratings");
  job.options.job_text = job_text("ratings { directory: 'ratings' sizes: 200 sizes: 120 }");
  job.options.settings = {"training.batch_size=500"};
  train(job.options);
  Model model(job.run());
  CHECK(model.input().kind == InputKind::kIds);
  CHECK(model.input().shape == std::vector<std::int64_t>{2});
  const std::vector<std::int32_t> ids = {0, 0, 199, 119, 7, 3};
  write_text(job / "x.npy", npy("<i4", "3, 2", bytes_of(ids)));
  const std::vector<json> expected = program_says(job, "x.npy");
  const std::vector<Prediction> predictions = model.predict(ids);
  REQUIRE(predictions.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(predictions[i].top.empty());
    REQUIRE(predictions[i].score);
    CHECK(*predictions[i].score == expected[i]["score"].get<float>());
  }
  for (const std::vector<std::int32_t>& wrong : {std::vector{0, 120}, std::vector{200, 0}, std::vector{-1, 0}}) {
    const auto [kind, message] = error_of([&] { model.predict(wrong); });
    CHECK(kind == ErrorKind::kUsage);
    CHECK_THAT(message, ContainsSubstring("example 0: column"));
  }
}

TEST_CASE("library model: image files are prepared as the program does, and an unreadable one is an error of its own") {
  SmallJob job;
  train(job.options);
  Model model(job.run());
  write_text(job / "a.png", png(gradient(5, 4, 3, 5)));
  const std::vector<std::string> files = {job / "a.png", job / "missing.png", job / "a.png"};
  const std::vector<Prediction> predictions = model.predict_files(files, 1);
  REQUIRE(predictions.size() == 3);
  const json expected = program_says(job, "a.png", {"--top", "1"})[0];
  CHECK(equals(predictions[0], expected));
  CHECK(predictions[1].top.empty());
  CHECK_THAT(predictions[1].error, ContainsSubstring("cannot be opened"));
  CHECK(equals(predictions[2], expected));
  const std::vector<std::string> alone = {job / "missing.png"};
  CHECK(model.predict_files(alone, 1)[0].error == predictions[1].error);
  const std::vector<std::string> with_nul = {(job / "a.png").string() + std::string(1, '\0') + "b"};
  CHECK_THAT(model.predict_files(with_nul, 1)[0].error, ContainsSubstring("holds a NUL"));
}

TEST_CASE("library model: weights have names, shapes and values, and outlive a move of their model") {
  SmallJob job;
  train(job.options);
  Model first(job.run());
  Model model = std::move(first);
  const std::vector<Weights> all = model.weights();
  REQUIRE(all.size() == 2);
  const Weights weight = model.weights("logits.weight");
  CHECK(std::vector<std::int64_t>(weight.shape.begin(), weight.shape.end()) == std::vector<std::int64_t>{3, 20});
  REQUIRE(weight.values.size() == 60);
  // The file holds the same bytes.
  const std::string file = read_text(job / "run/model.safetensors");
  CHECK(file.find(bytes_of(std::vector<float>(weight.values.begin(), weight.values.end()))) != std::string::npos);
  const auto [kind, message] = error_of([&] { model.weights("logits.wieght"); });
  CHECK(kind == ErrorKind::kUsage);
  CHECK_THAT(message, ContainsSubstring("did you mean 'logits.weight'?"));
}

TEST_CASE("library model: a checkpoint and a device can be chosen") {
  SmallJob job;
  train(job.options);
  const auto values = [&](const ModelOptions& options, const std::string& run) {
    const Model model(run, options);
    const Weights weight = model.weights("logits.weight");
    return std::vector<float>(weight.values.begin(), weight.values.end());
  };
  const std::vector<float> last = values({}, job.run());
  CHECK(values({.checkpoint = "last", .devices = {"cpu"}}, job.run()) == last);
  CHECK(values({.checkpoint = "60"}, job.run()) == last);  // 4 epochs of 15 mini-batches
  CHECK(values({}, job / "run/checkpoints/60") == last);
  CHECK(error_of([&] { values({.checkpoint = "59"}, job.run()); }).first == ErrorKind::kUsage);
  CHECK(error_of([&] { values({.checkpoint = {}, .devices = {"cpu:9999"}}, job.run()); }).first == ErrorKind::kUsage);
}

TEST_CASE("library model: it warns where the job has another preparation or labels than the saved model") {
  SmallJob job;
  job.options.settings.emplace_back("data.class_names=['ant', 'bee', 'cow']");
  train(job.options);
  CHECK(Model(job.run()).warnings().empty());
  const std::string text = read_text(job / "run/job.txtpb");
  const std::size_t bee = text.find("\"bee\"");
  REQUIRE(bee != std::string::npos);
  write_text(job / "run/job.txtpb", std::string(text).replace(bee, 5, "\"owl\""));
  Model model(job.run());
  CHECK(model.labels() == std::vector<std::string>{"ant", "bee", "cow"});
  REQUIRE(model.warnings().size() == 1);
  CHECK_THAT(model.warnings()[0],
             ContainsSubstring("other class_names") && ContainsSubstring("The description in the model is used"));
}

TEST_CASE("library model: wrong runs, examples and numbers are errors that say what is wrong") {
  SmallJob job;
  CHECK(error_of([&] { Model(job.run()); }).first == ErrorKind::kUsage);
  train(job.options);
  Model model(job.run());
  const auto [kind, message] = error_of([&] { model.predict(std::vector<std::uint8_t>(30)); });
  CHECK(kind == ErrorKind::kUsage);
  CHECK_THAT(message, ContainsSubstring("30 values are not a whole number of examples: each has 20"));
  CHECK(error_of([&] { model.predict(bytes(2), 0); }).first == ErrorKind::kUsage);
  CHECK(error_of([&] { model.predict(std::vector<std::int32_t>(2)); }).first == ErrorKind::kUsage);
  const std::string file = read_text(job / "run/model.safetensors");
  write_text(job / "run/model.safetensors", file.substr(0, file.size() - 4));
  CHECK(error_of([&] { Model(job.run()); }).first == ErrorKind::kCheckpoint);
}

}  // namespace arbalest::tests
