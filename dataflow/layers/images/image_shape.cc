#include "dataflow/layers/images/image_shape.h"

#include <algorithm>

#include <fmt/format.h>

#include "dataflow/layers/layer.h"
#include "engine/base/error.h"

namespace arbalest::dataflow {

void check_images(const engine::Shape& input) {
  if (input.rank() == 4) return;
  engine::fail(engine::ErrorKind::kInvalidJob,
               "needs images [channels, height, width] as input, not {} features per example; layers on images must "
               "stand before dense and flatten",
               input.elements_per_example());
}

namespace {

// TensorFlow's rule.
void pad_to_same(std::int64_t input, std::int64_t span, std::int64_t stride, std::int64_t& before,
                 std::int64_t& extra) {
  const std::int64_t output = (input + stride - 1) / stride;
  const std::int64_t total = std::max<std::int64_t>((output - 1) * stride + span - input, 0);
  before = total / 2;
  extra = total % 2;
}

}  // namespace

engine::Window place_window(const engine::Shape& input, const engine::Window& window, PaddingMode mode) {
  check_images(input);
  engine::Window placed = window;
  const engine::Extent2d span = engine::window_span(window);
  if (mode == PaddingMode::kSame) {
    pad_to_same(input[2], span.height, window.stride.height, placed.padding.height, placed.extra_padding.height);
    pad_to_same(input[3], span.width, window.stride.width, placed.padding.width, placed.extra_padding.width);
  }
  const engine::Extent2d positions = engine::window_positions(input, placed);
  if (positions.height < 1 || positions.width < 1) {
    const bool is_dilated = span != window.kernel;
    throw LayerError(
        "kernel",
        fmt::format("a {}x{} window{} with padding {}x{} does not fit into its input of {}x{}; use a smaller kernel or "
                    "more padding",
                    window.kernel.height, window.kernel.width,
                    is_dilated ? fmt::format(", dilated to {}x{},", span.height, span.width) : "",
                    window.padding.height, window.padding.width, input[2], input[3]));
  }
  return placed;
}

}  // namespace arbalest::dataflow
