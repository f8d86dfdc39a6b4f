// The operators of matrix factorization, compared with the references: embedding, inner product and squared error.
#include <bit>
#include <cmath>

#include "engine/base/error.h"
#include "tests/engine/operator_run.h"
#include "tests/support/bfloat16.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

namespace arbalest::tests {
namespace {

using engine::DType;
using engine::EmbeddingSpec;
using engine::InnerProductSpec;
using engine::OperatorMode;
using engine::PrepareOptions;
using engine::SquaredErrorSpec;

Floats to_floats(const Values& values) { return {values.begin(), values.end()}; }

// An embedding of the second of two columns. The other column has ids outside every table.
OperatorCase embedding_case(engine::Device& device, std::int64_t rows, std::int64_t width, const Labels& ids) {
  OperatorCase of;
  const auto examples = static_cast<std::int64_t>(ids.size());
  of.input = device.plain_layout({examples, 2}, DType::kInt32);
  of.spec = EmbeddingSpec{.ids = of.input, .column = 1, .rows = rows, .width = width};
  for (const std::int32_t id : ids) of.input_values.insert(of.input_values.end(), {-1.0, static_cast<double>(id)});
  of.parameters = {random_values(rows * width, 1)};
  of.output_gradient = random_values(examples * width, 2);
  return of;
}

PrepareOptions without_input_gradient(int threads) { return {.threads = threads, .input_gradient = false}; }

TEST_CASE("embedding agrees with the reference, and its dense gradient has the same bits for any number of threads") {
  const auto device = open_test_device();
  const auto [examples, rows, width] =
      GENERATE(table<std::int64_t, std::int64_t, std::int64_t>({{1, 1, 1}, {5, 3, 1}, {64, 7, 33}, {300, 2000, 16}}));
  Labels ids;
  for (const double value : random_values(examples, 3)) {
    ids.push_back(static_cast<std::int32_t>((value + 1.0) / 2.0 * static_cast<double>(rows)));
  }
  CAPTURE(examples, rows, width);
  OperatorCase of = embedding_case(*device, rows, width, ids);
  const OperatorRun run = run_operator(*device, of, without_input_gradient(1));
  CHECK(run.output == to_floats(embedding(width, of.parameters[0], ids)));
  const Values expected = embedding_gradient(rows, width, ids, of.output_gradient);
  CHECK(relative_error(run.parameter_gradients[0], expected) < 1e-6);
  for (std::size_t e = 0; e < expected.size(); ++e) {
    if (expected[e] == 0.0) CHECK(run.parameter_gradients[0][e] == 0.0F);
  }
  of.replayed = true;  // the second run finds the first one's gradient in the buffer
  for (const int threads : {1, 3, 4}) {
    const OperatorRun again = run_operator(*device, of, without_input_gradient(threads));
    CHECK(again.output == run.output);
    CHECK(again.parameter_gradients == run.parameter_gradients);
  }
  CHECK(run_operator(*device, of, {.mode = OperatorMode::kInference}).output == run.output);
}

TEST_CASE("an embedding's gradient sums the rows of an id in the order of the mini-batch") {
  const auto device = open_test_device();
  OperatorCase of = embedding_case(*device, 2, 1, {1, 1, 1, 0, 1});
  of.output_gradient = {1e8, 1.0, -1e8, 5.0, 1.0};  // in float32 1e8 + 1 is 1e8
  CHECK(run_operator(*device, of, without_input_gradient(2)).parameter_gradients[0] == Floats{5.0F, 1.0F});
}

TEST_CASE("an id without a row is an error, or NaN on a GPU") {
  const auto device = open_test_device();
  const std::int32_t id = GENERATE(-1, 3);
  OperatorCase of = embedding_case(*device, 3, 2, {0, id});
  of.output_gradient.clear();
  if (device->is_cuda()) {
    const Floats output = run_operator(*device, of, without_input_gradient(1)).output;
    CHECK(std::isnan(output[2]));
    CHECK(std::isfinite(output[0]));
  } else {
    CHECK_THROWS_WITH(run_operator(*device, of, without_input_gradient(1)),
                      ContainsSubstring("example 1 in the mini-batch is not below the number of rows, 3"));
  }
}

TEST_CASE("inner product agrees with the reference, with a bias and without") {
  const auto device = open_test_device();
  const auto [examples, features] = GENERATE(table<std::int64_t, std::int64_t>({{1, 1}, {5, 3}, {33, 17}, {300, 64}}));
  const bool bias = GENERATE(false, true);
  for (const Arithmetic& in : tensor_types(*device)) {
    CAPTURE(in.name, examples, features, bias);
    const std::int64_t elements = examples * features;
    OperatorCase of;
    of.input = device->plain_layout({examples, features}, in.dtype);
    of.input_values = random_values(elements, 1, in.dtype);
    of.others = {{of.input, random_values(elements, 2, in.dtype)}};
    of.spec = InnerProductSpec{of.input, of.input, bias};
    if (bias) of.parameters = {{0.375}};
    of.output_gradient = random_values(examples, 3, in.dtype);
    const OperatorRun run = run_operator(*device, of, {});
    const Values expected = inner_product(features, of.input_values, of.others[0].values, bias ? 0.375 : 0.0);
    CHECK(relative_error(run.output, expected) < in.tolerance);
    const LinearGradients gradients =
        inner_product_gradients(features, of.input_values, of.others[0].values, of.output_gradient);
    CHECK(relative_error(run.input_gradient, gradients.input) < in.tolerance);
    CHECK(relative_error(run.other_gradients[0], gradients.weights) < in.tolerance);
    if (bias) CHECK(relative_error(run.parameter_gradients[0], gradients.bias) < 1e-5);

    const OperatorRun threaded = run_operator(*device, of, {.threads = 3});
    CHECK(threaded.output == run.output);
    CHECK(threaded.other_gradients == run.other_gradients);
    CHECK(run_operator(*device, of, {.no_gradient = {true, false}}).other_gradients == run.other_gradients);
    CHECK(run_operator(*device, of, {.no_gradient = {false, true}}).input_gradient == run.input_gradient);
    CHECK(run_operator(*device, of, {.mode = OperatorMode::kInference}).output == run.output);
  }
}

TEST_CASE("float32 vectors can be multiplied with bfloat16 ones") {
  const auto device = open_test_device();
  if (!computes_bfloat16(*device)) return;
  const bool swapped = GENERATE(false, true);
  const engine::Layout single = device->plain_layout({5, 3}, DType::kFloat32);
  const engine::Layout half = device->plain_layout({5, 3}, DType::kBFloat16);
  OperatorCase of;
  of.input = swapped ? half : single;
  of.input_values = random_values(15, 1, DType::kBFloat16);
  of.others = {{swapped ? single : half, random_values(15, 2, DType::kBFloat16)}};
  of.spec = InnerProductSpec{of.input, of.others[0].layout};
  of.output_gradient = random_values(5, 3, DType::kBFloat16);
  const OperatorRun run = run_operator(*device, of, {});
  CHECK(relative_error(run.output, inner_product(3, of.input_values, of.others[0].values, 0.0)) < 0x1p-8);
  const LinearGradients gradients =
      inner_product_gradients(3, of.input_values, of.others[0].values, of.output_gradient);
  CHECK(relative_error(run.input_gradient, gradients.input) < 0x1p-8);
  CHECK(relative_error(run.other_gradients[0], gradients.weights) < 0x1p-8);
}

OperatorCase error_case(engine::Device& device, const Values& predictions, const Values& labels,
                        DType dtype = DType::kFloat32) {
  const auto examples = static_cast<std::int64_t>(labels.size());
  OperatorCase of;
  of.input = device.plain_layout({examples, 1}, dtype);
  of.spec = SquaredErrorSpec{of.input, device.plain_layout({examples}, DType::kFloat32)};
  of.input_values = predictions;
  for (const double label : labels) of.labels.push_back(std::bit_cast<std::int32_t>(static_cast<float>(label)));
  return of;
}

TEST_CASE("squared error agrees with the reference, without examples that have no label") {
  const auto device = open_test_device();
  const std::int64_t examples = GENERATE(1, 5, 64, 1000);
  Values labels = random_values(examples, 2);
  if (examples > 1) labels[1] = std::nan("");
  for (const Arithmetic& in : tensor_types(*device)) {
    CAPTURE(in.name, examples);
    OperatorCase of = error_case(*device, random_values(examples, 1, in.dtype), labels, in.dtype);
    const OperatorRun run = run_operator(*device, of, {});
    CHECK(static_cast<double>(run.output.at(0)) == Approx(squared_error(of.input_values, labels)).epsilon(1e-5));
    CHECK(relative_error(run.input_gradient, squared_error_gradient(of.input_values, labels)) < in.tolerance);
    CHECK(run_operator(*device, of, {.mode = OperatorMode::kInference}).output == run.output);
    CHECK(run_operator(*device, of, {.threads = 3}).input_gradient == run.input_gradient);
  }
}

TEST_CASE("training multiplies a squared error by its weight and adds it to another loss, inference does neither") {
  const auto device = open_test_device();
  OperatorCase of = error_case(*device, {1.0, 2.0}, {3.0, 2.5});
  std::get<SquaredErrorSpec>(of.spec).weight = 0.5F;
  const OperatorRun first = run_operator(*device, of, {});
  CHECK(first.output == Floats{2.125F});
  CHECK(first.input_gradient == Floats{-1.0F, -0.25F});
  const float before = std::bit_cast<float>(0x41414141U);  // content of the output before the run
  CHECK(run_operator(*device, of, {.adds_to_loss = true}).output == Floats{2.125F + before});
  CHECK(run_operator(*device, of, {.mode = OperatorMode::kInference}).output == Floats{4.25F});
}

TEST_CASE("a non-finite prediction gives a non-finite loss") {
  const auto device = open_test_device();
  const OperatorRun run = run_operator(*device, error_case(*device, {std::nan(""), 1.0}, {1.0, 1.0}), {});
  CHECK(std::isnan(run.output.at(0)));
  CHECK(std::isnan(run.input_gradient.at(0)));
  CHECK(run.input_gradient.at(1) == 0.0F);
}

}  // namespace
}  // namespace arbalest::tests
