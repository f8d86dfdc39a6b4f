#include "tests/engine/operator_run.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"
#include "tests/support/thread_counts.h"

namespace arbalest::tests {
namespace {

using engine::DType;
using engine::OperatorMode;
using engine::Pool2dSpec;
using engine::PoolKind;
using engine::Shape;
using engine::Window;

struct PoolCase {
  const char* what;
  Shape input;
  Window window;
};

const PoolCase kPools[] = {
    {"LeNet pool1", {32, 20, 24, 24}, {{2, 2}, {2, 2}, {0, 0}}},
    {"overlapping, padded", {5, 3, 9, 7}, {{3, 3}, {2, 2}, {1, 1}}},
    {"not square, last row unused", {1, 50, 7, 6}, {{2, 3}, {2, 1}, {0, 0}}},
    {"one channel", {5, 1, 6, 6}, {{3, 2}, {1, 2}, {1, 0}}},
    {"sixteen examples, overlapping, padded", {16, 3, 9, 7}, {{3, 3}, {2, 2}, {1, 1}}},
    {"sixteen examples, last column unused", {16, 5, 4, 5}, {{2, 2}, {2, 2}, {0, 0}}},
    {"48 examples, stride above the window", {48, 1, 9, 11}, {{2, 3}, {3, 4}, {0, 1}}},
    {"global", {5, 64, 8, 8}, {{8, 8}, {1, 1}, {0, 0}}},
    {"a window of 576 elements", {2, 20, 24, 24}, {{24, 24}, {1, 1}, {0, 0}}},
    {"a single number", {1, 1, 1, 1}, {{1, 1}, {1, 1}, {0, 0}}},
    {"one pixel, 17 channels", {3, 17, 1, 1}, {{1, 1}, {1, 1}, {0, 0}}},
    {"one pixel in the middle of its window", {1, 17, 1, 1}, {{3, 3}, {1, 1}, {1, 1}}},
    {"images of one row", {2, 33, 1, 9}, {{1, 2}, {1, 2}, {0, 0}}},
    {"stride above the window", {1, 17, 9, 11}, {{2, 2}, {3, 4}, {0, 0}}},
    {"stride above the window, padded", {2, 3, 10, 7}, {{2, 3}, {5, 4}, {1, 2}}},
    {"stride above the image", {2, 20, 4, 4}, {{3, 3}, {8, 8}, {0, 0}}},
    {"one more pixel below and to the right", {3, 20, 6, 6}, {{3, 3}, {2, 2}, {0, 0}, {1, 1}}},
    {"one more pixel to the right, three channels", {2, 3, 8, 8}, {{2, 3}, {2, 2}, {0, 0}, {0, 1}}},
    {"padded, one more pixel below", {2, 17, 8, 7}, {{3, 3}, {2, 2}, {1, 1}, {1, 0}}},
    {"one more pixel above and to the left", {3, 20, 6, 6}, {{3, 3}, {2, 2}, {1, 1}, {-1, -1}}},
    {"two more pixels above, one more to the right", {2, 3, 8, 8}, {{3, 3}, {2, 2}, {2, 0}, {-2, 1}}},
    {"sixteen examples, one more pixel to the left", {16, 5, 4, 5}, {{3, 3}, {2, 1}, {1, 1}, {0, -1}}},
    {"the last window has one pixel of four by four", {2, 16, 5, 9}, {{4, 4}, {4, 4}, {0, 0}, {3, 3}}},
};

TEST_CASE("pool2d agrees with the reference") {
  const auto device = open_test_device();
  const auto [kind, count_padding] = GENERATE(
      table<PoolKind, bool>({{PoolKind::kMax, false}, {PoolKind::kAverage, false}, {PoolKind::kAverage, true}}));
  const bool native = GENERATE(false, true);
  const int threads = GENERATE(from_range(thread_counts()));
  for (const PoolCase& of : kPools) {
    DYNAMIC_SECTION(of.what << (kind == PoolKind::kMax ? ", max" : ", average")
                            << (count_padding ? " with zeros, native " : ", native ") << native << ", threads "
                            << threads) {
      for (const Arithmetic& in : tensor_types(*device)) {
        CAPTURE(in.name);
        OperatorCase run;
        run.input =
            native ? native_image_layout(*device, of.input, in.dtype) : device->plain_layout(of.input, in.dtype);
        run.spec = Pool2dSpec{run.input, kind, of.window, count_padding};
        run.input_values = random_values(of.input.elements(), 1, in.dtype);
        run.output_gradient = random_values(conv2d_shape(of.input, of.input[1], of.window).elements(), 2, in.dtype);
        run.replayed = true;

        const OperatorRun result = run_operator(*device, run, {.threads = threads});
        CHECK(relative_error(result.output, pool2d(of.input, run.input_values, kind, of.window, count_padding)) <
              in.tolerance);
        CHECK(relative_error(result.input_gradient, pool2d_gradient(of.input, run.input_values, kind, of.window,
                                                                    run.output_gradient, count_padding)) <
              in.tolerance);
        CHECK(result.padding_is_zero);

        const OperatorRun inference =
            run_operator(*device, run, {.mode = OperatorMode::kInference, .threads = threads});
        CHECK(inference.output == result.output);
        CHECK(device->prepare(run.spec, {.mode = OperatorMode::kInference})->traits().saved_bytes == 0);
      }
    }
  }
}

TEST_CASE("max pooling of negative numbers: padding is never the maximum") {
  const auto device = open_test_device();
  OperatorCase run;
  run.input = device->plain_layout({1, 1, 3, 3}, DType::kFloat32);
  run.spec = Pool2dSpec{run.input, PoolKind::kMax, {{3, 3}, {2, 2}, {1, 1}}};
  run.input_values = {-9, -8, -7, -6, -5, -4, -3, -2, -1};
  CHECK(run_operator(*device, run, {}).output == Floats{-5, -4, -2, -1});
}

}  // namespace
}  // namespace arbalest::tests
