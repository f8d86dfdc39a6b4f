#include "tests/cudnn/convolution.h"

#include <fmt/format.h>

namespace arbalest::tests::cudnn {

namespace {

std::string text(const engine::Extent2d& extent) { return fmt::format("{}x{}", extent.height, extent.width); }

}  // namespace

const char* to_string(Pass pass) {
  switch (pass) {
    case Pass::kForward: return "forward";
    case Pass::kWeightGradient: return "weight gradient";
    case Pass::kInputGradient: break;
  }
  return "input gradient";
}

const char* to_string(engine::cuda::Order order) {
  return order == engine::cuda::Order::kChannelsLast ? "NHWC" : "NCHW";
}

std::string to_string(const Convolution& convolution) {
  const engine::Window& window = convolution.window;
  const bool dilated = window.dilation != engine::Extent2d{1, 1};
  return fmt::format("{} * {}, stride {}, padding {}{}", to_string(convolution.input), to_string(convolution.weights),
                     text(window.stride), text(window.padding),
                     dilated ? ", dilation " + text(window.dilation) : std::string());
}

}  // namespace arbalest::tests::cudnn
