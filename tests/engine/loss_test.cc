// Softmax cross entropy and accuracy, compared with the references.
#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

#include "tests/engine/operator_run.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

namespace arbalest::tests {
namespace {

using engine::AccuracySpec;
using engine::DType;
using engine::OperatorMode;
using engine::SoftmaxCrossEntropySpec;

Labels random_labels(std::int64_t examples, std::int64_t classes, unsigned seed) {
  Labels labels;
  for (const double value : random_values(examples, seed)) {
    labels.push_back(static_cast<std::int32_t>((value + 1.0) / 2.0 * static_cast<double>(classes)));
  }
  return labels;
}

template <typename Spec>
OperatorCase make_case(engine::Device& device, std::int64_t classes, const Values& logits, const Labels& labels,
                       DType dtype = DType::kFloat32) {
  const auto examples = static_cast<std::int64_t>(labels.size());
  OperatorCase of;
  of.input = device.plain_layout({examples, classes}, dtype);
  of.spec = Spec{of.input, device.plain_layout({examples}, DType::kInt32)};
  of.input_values = logits;
  of.labels = labels;
  if constexpr (std::is_same_v<Spec, AccuracySpec>) std::get<Spec>(of.spec).top = {1, 5};
  return of;
}

TEST_CASE("softmax cross entropy agrees with the reference") {
  const auto device = open_test_device();
  const auto [examples, classes] =
      GENERATE(table<std::int64_t, std::int64_t>({{1, 1}, {1, 2}, {1, 17}, {5, 10}, {32, 1000}, {64, 17}}));
  const double scale = GENERATE(1.0, 30.0);
  Values logits = random_values(examples * classes, 1);
  for (double& logit : logits) logit *= scale;
  Labels labels = random_labels(examples, classes, 2);
  if (examples > 1) labels[1] = engine::kNoLabel;
  for (const Arithmetic& in : tensor_types(*device)) {
    CAPTURE(in.name);
    logits = representable(logits, in.dtype);
    const OperatorCase of = make_case<SoftmaxCrossEntropySpec>(*device, classes, logits, labels, in.dtype);

    const OperatorRun run = run_operator(*device, of, {});
    CHECK(static_cast<double>(run.output.at(0)) ==
          Approx(softmax_cross_entropy(classes, logits, labels)).epsilon(1e-5));
    CHECK(relative_error(run.input_gradient, softmax_cross_entropy_gradient(classes, logits, labels)) < in.tolerance);

    // The order of additions does not depend on the number of threads.
    const OperatorRun threaded = run_operator(*device, of, {.threads = 3});
    CHECK(threaded.output == run.output);
    CHECK(threaded.input_gradient == run.input_gradient);
    CHECK(run_operator(*device, of, {.mode = OperatorMode::kInference}).output == run.output);
  }
}

TEST_CASE("training multiplies a loss by its weight and adds it to another, inference does neither") {
  const auto device = open_test_device();
  constexpr std::int64_t kClasses = 17;
  const std::int64_t examples = GENERATE(3, 90);
  const float smoothing = GENERATE(0.0F, 0.125F);
  const Values logits = random_values(examples * kClasses, 1);
  const Labels labels = random_labels(examples, kClasses, 2);
  OperatorCase of = make_case<SoftmaxCrossEntropySpec>(*device, kClasses, logits, labels);
  std::get<SoftmaxCrossEntropySpec>(of.spec).weight = 0.4F;
  std::get<SoftmaxCrossEntropySpec>(of.spec).label_smoothing = smoothing;
  const double loss = softmax_cross_entropy(kClasses, logits, labels, smoothing);
  Values gradient = softmax_cross_entropy_gradient(kClasses, logits, labels, smoothing);
  for (double& value : gradient) value *= 0.4;
  const OperatorRun first = run_operator(*device, of, {});
  CHECK(static_cast<double>(first.output.at(0)) == Approx(0.4 * loss).epsilon(1e-5));
  CHECK(relative_error(first.input_gradient, gradient) < 1e-5);
  const OperatorRun second = run_operator(*device, of, {.adds_to_loss = true});
  const float before = std::bit_cast<float>(0x41414141U);  // content of the output before the run
  CHECK(static_cast<double>(second.output.at(0)) == Approx(0.4 * loss + static_cast<double>(before)).epsilon(1e-5));
  CHECK(second.input_gradient == first.input_gradient);
  const OperatorRun inference = run_operator(*device, of, {.mode = OperatorMode::kInference});
  const double plain_loss = softmax_cross_entropy(kClasses, logits, labels);
  CHECK(static_cast<double>(inference.output.at(0)) == Approx(plain_loss).epsilon(1e-5));
}

TEST_CASE("label smoothing distributes a part of the target, in training only") {
  const auto device = open_test_device();
  const auto [examples, classes] =
      GENERATE(table<std::int64_t, std::int64_t>({{1, 1}, {1, 2}, {5, 10}, {32, 1000}, {64, 17}}));
  constexpr float kSmoothing = 0.125F;
  Values logits = random_values(examples * classes, 1);
  for (double& logit : logits) logit *= 10.0;
  Labels labels = random_labels(examples, classes, 2);
  if (examples > 1) labels[1] = engine::kNoLabel;
  for (const Arithmetic& in : tensor_types(*device)) {
    CAPTURE(in.name, examples, classes);
    logits = representable(logits, in.dtype);
    OperatorCase of = make_case<SoftmaxCrossEntropySpec>(*device, classes, logits, labels, in.dtype);
    const OperatorRun plain = run_operator(*device, of, {.mode = OperatorMode::kInference});
    std::get<SoftmaxCrossEntropySpec>(of.spec).label_smoothing = kSmoothing;

    const OperatorRun run = run_operator(*device, of, {});
    CHECK(static_cast<double>(run.output.at(0)) ==
          Approx(softmax_cross_entropy(classes, logits, labels, kSmoothing)).epsilon(1e-5));
    CHECK(relative_error(run.input_gradient, softmax_cross_entropy_gradient(classes, logits, labels, kSmoothing)) <
          in.tolerance);
    const OperatorRun threaded = run_operator(*device, of, {.threads = 3});
    CHECK(threaded.output == run.output);
    CHECK(threaded.input_gradient == run.input_gradient);
    CHECK(run_operator(*device, of, {.mode = OperatorMode::kInference}).output == plain.output);
  }
}

TEST_CASE("examples without a label count neither in the loss nor in the mean") {
  const auto device = open_test_device();
  const Values logits = random_values(4 * 3, 1);
  Values doubled = logits;
  doubled.insert(doubled.end(), logits.begin(), logits.end());
  const OperatorRun half =
      run_operator(*device, make_case<SoftmaxCrossEntropySpec>(*device, 3, logits, {0, 1, 2, 0}), {});
  const OperatorRun padded =
      run_operator(*device, make_case<SoftmaxCrossEntropySpec>(*device, 3, doubled, {0, 1, 2, 0, -1, -1, -1, -1}), {});
  CHECK(padded.output == half.output);
  CHECK(std::equal(half.input_gradient.begin(), half.input_gradient.end(), padded.input_gradient.begin()));
  CHECK(
      std::all_of(padded.input_gradient.begin() + 12, padded.input_gradient.end(), [](float g) { return g == 0.0F; }));

  const OperatorRun none =
      run_operator(*device, make_case<SoftmaxCrossEntropySpec>(*device, 3, logits, {-1, -1, -1, -1}), {});
  CHECK(none.output == Floats{0.0F});
  CHECK(none.input_gradient == Floats(12, 0.0F));
}

TEST_CASE("logits whose difference overflows exp still give a finite loss") {
  const auto device = open_test_device();
  const OperatorRun run = run_operator(
      *device, make_case<SoftmaxCrossEntropySpec>(*device, 3, {1000, 0, -1000, -5000, -5001, -5002}, {1, 0}), {});
  CHECK(run.output.at(0) == Approx(1000.0 + 0.40760596));
  CHECK(run.input_gradient.at(0) == Approx(0.5));
  CHECK(run.input_gradient.at(1) == Approx(-0.5));
}

TEST_CASE("a logit that is not finite makes the loss not finite") {
  const auto device = open_test_device();
  const double bad = GENERATE(HUGE_VAL, std::nan(""));
  const std::size_t where = GENERATE(0U, 1U, 2U);
  Values logits{0.5, -0.5, 0.25};
  logits[where] = bad;
  const OperatorRun run = run_operator(*device, make_case<SoftmaxCrossEntropySpec>(*device, 3, logits, {1}), {});
  CHECK_FALSE(std::isfinite(run.output.at(0)));
}

TEST_CASE("a label outside the classes is an error, or NaN on a GPU") {
  const auto device = open_test_device();
  const std::int32_t label = GENERATE(3, -2);
  const OperatorCase of = make_case<SoftmaxCrossEntropySpec>(*device, 3, Values(6), {0, label});
  if (device->is_cuda()) {  // a kernel cannot throw
    CHECK(std::isnan(run_operator(*device, of, {}).output[0]));
    return;
  }
  CHECK_THROWS_WITH(run_operator(*device, of, {}),
                    ContainsSubstring("label " + std::to_string(label) + " of example 1"));
}

// Returns the counts of correct answers and of labels among the five largest logits.
Floats counts(std::int64_t classes, const Values& logits, const Labels& labels) {
  return {static_cast<float>(count_correct(classes, logits, labels)),
          static_cast<float>(count_correct(classes, logits, labels, 5))};
}

TEST_CASE("accuracy agrees with the reference") {
  const auto device = open_test_device();
  const double nan = std::nan("");
  const double infinity = HUGE_VAL;
  const Values logits{1, 1, 0, 2, nan, -5, nan, nan, -infinity, -infinity, 0, infinity, 3, 4};
  const Labels labels = GENERATE(Labels{0, 1, 1, 0, 0, 1, -1}, Labels{1, 0, 0, 1, 1, 0, 1});
  for (const Arithmetic& in : tensor_types(*device)) {
    const OperatorRun run = run_operator(*device, make_case<AccuracySpec>(*device, 2, logits, labels, in.dtype),
                                         {.mode = OperatorMode::kInference});
    CHECK(run.output == counts(2, logits, labels));
  }
}

TEST_CASE("top-5 accuracy counts a label if fewer than five logits rank before it") {
  const auto device = open_test_device();
  const double nan = std::nan("");
  const double infinity = HUGE_VAL;
  Values logits{
      6,         5,         4,         3,         2,         1,  //
      6,         5,         4,         3,         2,         1,  //
      1,         1,         1,         1,         1,         1,  // of equal logits the first one counts
      1,         1,         1,         1,         1,         1,  //
      nan,       6,         5,         4,         3,         2,  //
      nan,       6,         5,         4,         3,         2,  // NaN ranks last, and its class is never correct
      -infinity, -infinity, -infinity, -infinity, -infinity, infinity,
  };
  const Labels labels{4, 5, 4, 5, 5, 0, 4};
  for (const Arithmetic& in : tensor_types(*device)) {
    const OperatorRun run = run_operator(*device, make_case<AccuracySpec>(*device, 6, logits, labels, in.dtype),
                                         {.mode = OperatorMode::kInference});
    CHECK(run.output == Floats{0.0F, 3.0F});
    CHECK(run.output == counts(6, logits, labels));
  }
}

TEST_CASE("accuracy counts the labels among the k largest logits for each k of its list") {
  const auto device = open_test_device();
  const std::vector<std::int32_t> top = GENERATE(std::vector<std::int32_t>{3}, std::vector<std::int32_t>{9, 1, 2},
                                                 std::vector<std::int32_t>{1, 2, 3, 5, 16, 17});
  const std::int64_t examples = GENERATE(std::int64_t{7}, std::int64_t{9000});  // one block of a GPU, and several
  constexpr std::int64_t kClasses = 17;
  Labels labels = random_labels(examples, kClasses, 4);
  labels[2] = engine::kNoLabel;
  for (const Arithmetic& in : tensor_types(*device)) {
    const Values logits = random_values(examples * kClasses, 3, in.dtype);
    OperatorCase of = make_case<AccuracySpec>(*device, kClasses, logits, labels, in.dtype);
    std::get<AccuracySpec>(of.spec).top = top;
    Floats expected;
    for (const std::int32_t k : top) expected.push_back(static_cast<float>(count_correct(kClasses, logits, labels, k)));
    CHECK(run_operator(*device, of, {.mode = OperatorMode::kInference}).output == expected);
  }
}

TEST_CASE("a loss counts behind its sum what accuracy counts, and stays the same") {
  const auto device = open_test_device();
  const std::vector<std::int32_t> top = GENERATE(std::vector<std::int32_t>{1}, std::vector<std::int32_t>{9, 1, 2},
                                                 std::vector<std::int32_t>{1, 2, 3, 5, 16, 17});
  const std::int64_t examples = GENERATE(std::int64_t{7}, std::int64_t{300});  // one block of a GPU, and several
  const auto mode = GENERATE(OperatorMode::kTraining, OperatorMode::kInference);
  constexpr std::int64_t kClasses = 17;
  Labels labels = random_labels(examples, kClasses, 4);
  labels[2] = engine::kNoLabel;
  for (const Arithmetic& in : tensor_types(*device)) {
    CAPTURE(in.name, examples);
    Values logits = random_values(examples * kClasses, 3, in.dtype);
    logits[kClasses + static_cast<std::size_t>(labels[1])] = HUGE_VAL;  // the largest, and its loss is NaN
    if (examples > 100) logits[5 * kClasses + static_cast<std::size_t>(labels[5])] = std::nan("");
    OperatorCase of = make_case<SoftmaxCrossEntropySpec>(*device, kClasses, logits, labels, in.dtype);
    const OperatorRun alone = run_operator(*device, of, {.mode = mode});
    std::get<SoftmaxCrossEntropySpec>(of.spec).top = top;
    const OperatorRun run = run_operator(*device, of, {.mode = mode});
    REQUIRE(run.output.size() == 1 + top.size());
    CHECK(std::bit_cast<std::uint32_t>(run.output[0]) == std::bit_cast<std::uint32_t>(alone.output.at(0)));
    CHECK(std::ranges::equal(run.input_gradient, alone.input_gradient, [](float a, float b) {
      return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
    }));
    for (std::size_t k = 0; k < top.size(); ++k) {
      CHECK(run.output[1 + k] == static_cast<float>(count_correct(kClasses, logits, labels, top[k])));
    }
  }
}

TEST_CASE("a label outside the classes is never correct") {
  const auto device = open_test_device();
  const OperatorCase of = make_case<AccuracySpec>(*device, 3, {1, 2, 3, 1, 2, 3}, {3, -7});
  CHECK(run_operator(*device, of, {.mode = OperatorMode::kInference}).output == Floats{0.0F, 0.0F});
}

TEST_CASE("accuracy on random logits") {
  const auto device = open_test_device();
  const auto [examples, classes] =
      GENERATE(table<std::int64_t, std::int64_t>({{257, 10}, {64, 1000}, {1, 17}, {1, 1}, {9, 5}}));
  Labels labels = random_labels(examples, classes, 2);
  if (examples > 1) labels[1] = engine::kNoLabel;
  for (const Arithmetic& in : tensor_types(*device)) {
    const Values logits = random_values(examples * classes, 1, in.dtype);
    const OperatorCase of = make_case<AccuracySpec>(*device, classes, logits, labels, in.dtype);
    CHECK(run_operator(*device, of, {.mode = OperatorMode::kInference}).output == counts(classes, logits, labels));
  }
}

}  // namespace
}  // namespace arbalest::tests
