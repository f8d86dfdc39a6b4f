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

// Everything but the specification.
std::string circumstances(const PrepareOptions& options) {
  std::string text = fmt::format(", {}", to_string(options.precision));
  const bool trains = options.mode == OperatorMode::kTraining;
  text += !trains ? ", inference" : options.input_gradient ? ", training" : ", training without input gradient";
  if (!options.parameters.empty() && order_of(options.parameters[0]) == Order::kChannelsLast) {
    text += ", weights with channels last";
  }
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
                     additions_of(spec.bias, spec.activation.has_value()), circumstances(options));
}

std::string question_of(const DenseSpec& spec, const PrepareOptions& options) {
  return fmt::format("dense layer of input {}{}, {} units{}{}", to_string(spec.input.shape()), order_text(spec.input),
                     spec.units, additions_of(spec.bias, spec.activation.has_value()), circumstances(options));
}

}  // namespace arbalest::engine::cuda
