#include "dataflow/layers/image_shape.h"

#include <fmt/format.h>

#include "dataflow/layer.h"
#include "engine/error.h"

namespace arbalest::dataflow {

void check_images(const engine::Shape& input) {
  if (input.rank() == 4) return;
  engine::fail(engine::ErrorKind::kInvalidJob,
               "needs images [channels, height, width] as input, not {} features per example; layers on images must "
               "stand before dense and flatten",
               input.elements_per_example());
}

engine::Extent2d window_output(const engine::Shape& input, const engine::Window& window) {
  check_images(input);
  const engine::Extent2d output = engine::window_positions(input, window);
  if (output.height < 1 || output.width < 1) {
    throw LayerError(
        "kernel", fmt::format("a {}x{} window with padding {}x{} does not fit into its input of {}x{}; use a smaller "
                              "kernel or more padding",
                              window.kernel.height, window.kernel.width, window.padding.height, window.padding.width,
                              input[2], input[3]));
  }
  return output;
}

}  // namespace arbalest::dataflow
