#include "engine/cuda/choice/kernel_questions.h"

#include <fmt/format.h>

#include "engine/cuda/kernels/layout.h"

namespace arbalest::engine::cuda {

namespace {

std::string to_text(const Extent2d& extent) { return fmt::format("{}x{}", extent.height, extent.width); }

const char* additions_of(bool bias, bool activation) {
  if (bias) return activation ? ", with bias and activation" : ", with bias";
  return activation ? ", with activation" : "";
}

const char* order_text(const Layout& layout) {
  return order_of(layout) == Order::kChannelsLast ? " with channels last" : "";
}

// The order of weights that an operator was given. Nothing if it is the one that it would take itself (`own`): then a
// device to which the order of another is given has that device's question.
std::string order_of_weights(const PrepareOptions& options, Order own) {
  if (options.parameters.empty()) return "";
  const Layout& given = options.parameters[0];
  // Weights with one channel or one pixel lie the same in both orders.
  if (given.shape().rank() == 4) own = order_of(make_layout(given.shape(), given.dtype(), own));
  if (order_of(given) == own) return "";
  return order_of(given) == Order::kChannelsLast ? ", weights with channels last" : ", weights in canonical order";
}

// Everything but the extents. `own`: as for order_of_weights.
std::string circumstances(const Layout& input, const PrepareOptions& options, Order own) {
  std::string text = fmt::format(", {}", to_string(options.precision));
  const bool trains = options.mode == OperatorMode::kTraining;
  text += !trains ? ", inference" : options.input_gradient ? ", training" : ", training without input gradient";
  if (options.precision == Precision::kBFloat16 && !is_bfloat16(input)) text += ", float32 input";
  text += order_of_weights(options, own);
  if (trains) text += fmt::format(", {} replica{}", options.replicas, options.replicas == 1 ? "" : "s");
  return text;
}

}  // namespace

std::string to_text(const Conv2dSpec& spec) {
  const Window& window = spec.window;
  const std::string more =
      window.extra_padding == Extent2d{0, 0} ? "" : fmt::format(" and {} behind", to_text(window.extra_padding));
  return fmt::format("input {}, {} filters of {} in {} groups, stride {}, padding {}{}, dilation {}",
                     to_string(spec.input.shape()), spec.filters, to_text(window.kernel), spec.groups,
                     to_text(window.stride), to_text(window.padding), more, to_text(window.dilation));
}

std::string question_of_pass(const Conv2dSpec& spec, Precision precision, const char* pass) {
  return fmt::format("{}, {}: {}", to_text(spec), to_string(precision), pass);
}

std::string question_of(const Conv2dSpec& spec, const PrepareOptions& options) {
  return fmt::format("convolution of {}{}{}{}", to_text(spec), order_text(spec.input),
                     additions_of(spec.bias, spec.activation.has_value()),
                     circumstances(spec.input, options, order_of_convolutions(options.precision)));
}

std::string question_of(const DenseSpec& spec, const PrepareOptions& options) {
  return fmt::format("dense layer of input {}{}, {} units{}{}", to_string(spec.input.shape()), order_text(spec.input),
                     spec.units, additions_of(spec.bias, spec.activation.has_value()),
                     circumstances(spec.input, options, order_of(spec.input)));
}

}  // namespace arbalest::engine::cuda
