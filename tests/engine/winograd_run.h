// Runs a Winograd convolution, and its gradients, on tensors in canonical order.
#pragma once

#include <cmath>
#include <cstdint>

#include "tests/engine/lane_tensors.h"
#include "tests/support/numbers.h"

namespace arbalest::tests {

struct WinogradCase {
  const char* what;
  engine::Shape input;
  std::int64_t filters;
};

struct WinogradArguments {
  Values input, weights, bias, arriving;
};

struct WinogradResults {
  Floats output, rectified, input_gradient, weights_gradient, bias_gradient;
  bool operator==(const WinogradResults&) const = default;
};

// The two classes are those of engine/cpu/winograd/convolution.h. weights_gradient: [channels, taps, filters].
template <typename Convolution, typename WeightsGradient>
WinogradResults run_winograd(const WinogradCase& of, int threads, const WinogradArguments& with) {
  using engine::BFloat16;
  using engine::Shape;
  constexpr std::int64_t kTaps = 9;
  const std::int64_t channels = of.input[1];
  const Shape output{of.input[0], of.filters, of.input[2], of.input[3]};
  Tensor<BFloat16> x = to_lanes<BFloat16>(of.input, with.input);
  Tensor<BFloat16> arriving = to_lanes<BFloat16>(output, with.arriving);
  const auto convolve = [&](const Convolution& convolution, Tensor<BFloat16>& images, const Floats& weights,
                            bool reversed, const float* bias, bool relu, const Shape& result) {
    Tensor<BFloat16> given = tensor_of<BFloat16>(weights);
    Tensor<float> prepared(convolution.weight_units());
    Tensor<float> scratch(convolution.scratch_units());
    Tensor<BFloat16> y(result.elements());
    convolution.prepare(given.data(), reversed, prepared.units());
    convolution.run(threads, images.data(), prepared.units(), bias, relu, scratch.units(), y.data());
    return from_lanes(result, y);
  };
  const Floats by_filter = swapped(with.weights, of.filters, kTaps, channels);
  const Floats biases(with.bias.begin(), with.bias.end());
  const Convolution forward(of.input, of.filters);
  WinogradResults results;
  results.output = convolve(forward, x, by_filter, false, biases.data(), false, output);
  results.rectified = convolve(forward, x, by_filter, false, biases.data(), true, output);
  if (channels > 1) {
    results.input_gradient = convolve(Convolution(output, channels), arriving,
                                      channels_last(with.weights, channels, kTaps), true, nullptr, false, of.input);
  }
  const WeightsGradient gradient(of.input, of.filters);
  Tensor<float> scratch(gradient.scratch_units());
  results.weights_gradient.resize(with.weights.size(), NAN);
  results.bias_gradient.resize(with.bias.size(), NAN);
  gradient.run(threads, x.data(), arriving.data(), scratch.units(), results.weights_gradient.data(),
               results.bias_gradient.data());
  return results;
}

// With emulated instructions, on every processor.
WinogradResults run_emulated_winograd(const WinogradCase& of, int threads, const WinogradArguments& with);

}  // namespace arbalest::tests
