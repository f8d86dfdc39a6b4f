#include "tests/support/reference_ops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

namespace arbalest::tests {

using engine::ActivationFunction;
using engine::ActivationKind;
using engine::PoolKind;
using engine::Shape;
using engine::Window;

namespace {

std::size_t index(const Shape& shape, std::int64_t n, std::int64_t c, std::int64_t i, std::int64_t j) {
  return static_cast<std::size_t>(((n * shape[1] + c) * shape[2] + i) * shape[3] + j);
}

// Calls visit(n, o, i, j, row, column, r, s) for each output element (n, o, i, j) and each window position (r, s) that
// reads an input pixel (row, column). Positions in the padding are skipped.
template <typename Visit>
void for_each_window(const Shape& input, const Shape& output, const Window& window, const Visit& visit) {
  for (std::int64_t n = 0; n < output[0]; ++n) {
    for (std::int64_t o = 0; o < output[1]; ++o) {
      for (std::int64_t i = 0; i < output[2]; ++i) {
        for (std::int64_t j = 0; j < output[3]; ++j) {
          for (std::int64_t r = 0; r < window.kernel.height; ++r) {
            for (std::int64_t s = 0; s < window.kernel.width; ++s) {
              const std::int64_t row = i * window.stride.height - window.padding.height + r * window.dilation.height;
              const std::int64_t column = j * window.stride.width - window.padding.width + s * window.dilation.width;
              if (row < 0 || row >= input[2] || column < 0 || column >= input[3]) continue;
              visit(n, o, i, j, row, column, r, s);
            }
          }
        }
      }
    }
  }
}

Shape weights_shape(const Shape& input, std::int64_t filters, const Window& window, std::int64_t groups) {
  return {filters, input[1] / groups, window.kernel.height, window.kernel.width};
}

// The input channel of the first weight of filter `o`.
std::int64_t first_channel(const Shape& weights, std::int64_t o, std::int64_t groups) {
  return o * groups / weights[0] * weights[1];
}

}  // namespace

Shape conv2d_shape(const Shape& input, std::int64_t filters, const Window& window) {
  const auto along = [](std::int64_t extent, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                        std::int64_t extra, std::int64_t dilation) {
    return (extent + padding + padding + extra - (kernel * dilation - dilation + 1)) / stride + 1;
  };
  return {input[0], filters,
          along(input[2], window.kernel.height, window.stride.height, window.padding.height,
                window.extra_padding.height, window.dilation.height),
          along(input[3], window.kernel.width, window.stride.width, window.padding.width, window.extra_padding.width,
                window.dilation.width)};
}

Values conv2d(const Shape& shape, const Values& input, const Values& weights, const Values& bias, std::int64_t filters,
              const Window& window, std::int64_t groups) {
  const Shape output_shape = conv2d_shape(shape, filters, window);
  const Shape kernel = weights_shape(shape, filters, window, groups);
  Values output(static_cast<std::size_t>(output_shape.elements()));
  for (std::size_t e = 0; e < output.size() && !bias.empty(); ++e) {
    output[e] = bias[e / static_cast<std::size_t>(output_shape[2] * output_shape[3]) % bias.size()];
  }
  for_each_window(shape, output_shape, window,
                  [&](auto n, auto o, auto i, auto j, auto row, auto column, auto r, auto s) {
                    const std::int64_t first = first_channel(kernel, o, groups);
                    for (std::int64_t c = 0; c < kernel[1]; ++c) {
                      output[index(output_shape, n, o, i, j)] +=
                          input[index(shape, n, first + c, row, column)] * weights[index(kernel, o, c, r, s)];
                    }
                  });
  return output;
}

LinearGradients conv2d_gradients(const Shape& shape, const Values& input, const Values& weights, std::int64_t filters,
                                 const Window& window, const Values& output_gradient, std::int64_t groups) {
  const Shape output_shape = conv2d_shape(shape, filters, window);
  const Shape kernel = weights_shape(shape, filters, window, groups);
  LinearGradients gradients{Values(input.size()), Values(weights.size()), Values(static_cast<std::size_t>(filters))};
  for_each_window(shape, output_shape, window,
                  [&](auto n, auto o, auto i, auto j, auto row, auto column, auto r, auto s) {
                    const double gradient = output_gradient[index(output_shape, n, o, i, j)];
                    const std::int64_t first = first_channel(kernel, o, groups);
                    for (std::int64_t c = 0; c < kernel[1]; ++c) {
                      const std::size_t read = index(shape, n, first + c, row, column);
                      gradients.input[read] += gradient * weights[index(kernel, o, c, r, s)];
                      gradients.weights[index(kernel, o, c, r, s)] += gradient * input[read];
                    }
                  });
  for (std::size_t e = 0; e < output_gradient.size(); ++e) {
    gradients.bias[e / static_cast<std::size_t>(output_shape[2] * output_shape[3]) % gradients.bias.size()] +=
        output_gradient[e];
  }
  return gradients;
}

Values dense(std::int64_t examples, const Values& input, const Values& weights, const Values& bias,
             std::int64_t units) {
  const auto rows = static_cast<std::size_t>(examples);
  const auto columns = static_cast<std::size_t>(units);
  const std::size_t features = input.size() / rows;
  Values output(rows * columns);
  for (std::size_t n = 0; n < rows; ++n) {
    for (std::size_t o = 0; o < columns; ++o) {
      double sum = bias.empty() ? 0.0 : bias[o];
      for (std::size_t f = 0; f < features; ++f) sum += input[n * features + f] * weights[o * features + f];
      output[n * columns + o] = sum;
    }
  }
  return output;
}

LinearGradients dense_gradients(std::int64_t examples, const Values& input, const Values& weights, std::int64_t units,
                                const Values& output_gradient) {
  const auto rows = static_cast<std::size_t>(examples);
  const auto columns = static_cast<std::size_t>(units);
  const std::size_t features = input.size() / rows;
  LinearGradients gradients{Values(input.size()), Values(weights.size()), Values(columns)};
  for (std::size_t n = 0; n < rows; ++n) {
    for (std::size_t o = 0; o < columns; ++o) {
      const double gradient = output_gradient[n * columns + o];
      gradients.bias[o] += gradient;
      for (std::size_t f = 0; f < features; ++f) {
        gradients.input[n * features + f] += gradient * weights[o * features + f];
        gradients.weights[o * features + f] += gradient * input[n * features + f];
      }
    }
  }
  return gradients;
}

namespace {

// The input elements of each output element's window.
std::vector<std::vector<std::size_t>> windows_of(const Shape& shape, const Window& window) {
  const Shape output_shape = conv2d_shape(shape, shape[1], window);
  std::vector<std::vector<std::size_t>> windows(static_cast<std::size_t>(output_shape.elements()));
  for_each_window(shape, output_shape, window, [&](auto n, auto c, auto i, auto j, auto row, auto column, auto, auto) {
    windows[index(output_shape, n, c, i, j)].push_back(index(shape, n, c, row, column));
  });
  return windows;
}

// The number of elements over which an average over `window` is taken.
double count_of(const std::vector<std::size_t>& elements, const Window& window, bool count_padding) {
  return count_padding ? static_cast<double>(window.kernel.height * window.kernel.width)
                       : static_cast<double>(elements.size());
}

std::size_t first_largest_of(const Values& input, const std::vector<std::size_t>& window) {
  std::size_t best = window.front();
  for (const std::size_t element : window) {
    if (input[element] > input[best]) best = element;
  }
  return best;
}

}  // namespace

Values pool2d(const Shape& shape, const Values& input, PoolKind kind, const Window& window, bool count_padding) {
  Values output;
  for (const auto& elements : windows_of(shape, window)) {
    if (kind == PoolKind::kMax) {
      output.push_back(input[first_largest_of(input, elements)]);
    } else {
      double sum = 0.0;
      for (const std::size_t element : elements) sum += input[element];
      output.push_back(sum / count_of(elements, window, count_padding));
    }
  }
  return output;
}

Values pool2d_gradient(const Shape& shape, const Values& input, PoolKind kind, const Window& window,
                       const Values& output_gradient, bool count_padding) {
  Values gradient(input.size());
  std::size_t position = 0;
  for (const auto& elements : windows_of(shape, window)) {
    const double arriving = output_gradient[position++];
    if (kind == PoolKind::kMax) {
      gradient[first_largest_of(input, elements)] += arriving;
    } else {
      const double count = count_of(elements, window, count_padding);
      for (const std::size_t element : elements) gradient[element] += arriving / count;
    }
  }
  return gradient;
}

Values activation(const Values& input, const ActivationFunction& f) {
  Values output;
  for (const double x : input) {
    switch (f.kind) {
      case ActivationKind::kRelu: output.push_back(x > 0.0 ? x : 0.0); break;
      case ActivationKind::kTanh: output.push_back(std::tanh(x)); break;
      case ActivationKind::kSigmoid: output.push_back(1.0 / (1.0 + std::exp(-x))); break;
      case ActivationKind::kLeakyRelu: output.push_back(x > 0.0 ? x : static_cast<double>(f.slope) * x); break;
      case ActivationKind::kGelu: output.push_back(0.5 * x * std::erfc(-x / std::sqrt(2.0))); break;
      case ActivationKind::kSilu: output.push_back(x / (1.0 + std::exp(-x))); break;
      case ActivationKind::kRelu6: output.push_back(std::clamp(x, 0.0, 6.0)); break;
      case ActivationKind::kHardSwish: output.push_back(x * std::clamp(x + 3.0, 0.0, 6.0) / 6.0); break;
    }
  }
  return output;
}

Values activation_gradient(const Values& read, const ActivationFunction& f, const Values& output_gradient) {
  Values gradient;
  for (std::size_t e = 0; e < read.size(); ++e) {
    const double y = read[e];
    switch (f.kind) {
      case ActivationKind::kRelu: gradient.push_back(y > 0.0 ? output_gradient[e] : 0.0); break;
      case ActivationKind::kTanh: gradient.push_back(output_gradient[e] * (1.0 - y * y)); break;
      case ActivationKind::kSigmoid: gradient.push_back(output_gradient[e] * y * (1.0 - y)); break;
      case ActivationKind::kLeakyRelu:
        gradient.push_back(output_gradient[e] * (y > 0.0 ? 1.0 : static_cast<double>(f.slope)));
        break;
      case ActivationKind::kGelu:
        gradient.push_back(output_gradient[e] * (0.5 * std::erfc(-y / std::sqrt(2.0)) +
                                                 y * std::exp(-0.5 * y * y) / std::sqrt(2.0 * std::numbers::pi)));
        break;
      case ActivationKind::kSilu: {
        const double s = 1.0 / (1.0 + std::exp(-y));
        gradient.push_back(output_gradient[e] * (s + y * s * (1.0 - s)));
        break;
      }
      case ActivationKind::kRelu6: gradient.push_back(y > 0.0 && y < 6.0 ? output_gradient[e] : 0.0); break;
      case ActivationKind::kHardSwish:
        gradient.push_back(output_gradient[e] * (y <= -3.0 ? 0.0 : y >= 3.0 ? 1.0 : (2.0 * y + 3.0) / 6.0));
        break;
    }
  }
  return gradient;
}

namespace {

// The elements of each channel.
std::vector<std::vector<std::size_t>> channels_of(const Shape& shape) {
  std::vector<std::vector<std::size_t>> channels(static_cast<std::size_t>(shape[1]));
  const auto pixels = static_cast<std::size_t>(shape.elements() / shape[0] / shape[1]);
  for (std::size_t e = 0; e < static_cast<std::size_t>(shape.elements()); ++e) {
    channels[e / pixels % channels.size()].push_back(e);
  }
  return channels;
}

}  // namespace

Values batch_norm_by(const Shape& shape, const Values& input, const Values& scale, const Values& shift,
                     const Values& mean, const Values& variance, double epsilon) {
  Values output(input.size());
  const auto channels = channels_of(shape);
  for (std::size_t c = 0; c < channels.size(); ++c) {
    for (const std::size_t e : channels[c]) {
      output[e] = scale[c] * (input[e] - mean[c]) / std::sqrt(variance[c] + epsilon) + shift[c];
    }
  }
  return output;
}

BatchNormReference batch_norm(const Shape& shape, const Values& input, const Values& scale, const Values& shift,
                              double epsilon) {
  BatchNormReference result;
  for (const auto& elements : channels_of(shape)) {
    const auto count = static_cast<double>(elements.size());
    double mean = 0.0;
    for (const std::size_t e : elements) mean += input[e] / count;
    double squares = 0.0;
    for (const std::size_t e : elements) squares += (input[e] - mean) * (input[e] - mean);
    result.mean.push_back(mean);
    result.variance.push_back(squares / count);
    result.unbiased_variance.push_back(squares / (count - 1.0));
  }
  result.output = batch_norm_by(shape, input, scale, shift, result.mean, result.variance, epsilon);
  return result;
}

// Derived from dL/dx = sum over outputs of dL/dy dy/dx, where mean and variance depend on x, too.
LinearGradients batch_norm_gradients(const Shape& shape, const Values& input, const Values& scale, double epsilon,
                                     const Values& output_gradient) {
  const BatchNormReference batch = batch_norm(shape, input, scale, Values(scale.size()), epsilon);
  LinearGradients gradients{Values(input.size()), Values(scale.size()), Values(scale.size())};
  const auto channels = channels_of(shape);
  for (std::size_t c = 0; c < channels.size(); ++c) {
    const auto count = static_cast<double>(channels[c].size());
    const double deviation = std::sqrt(batch.variance[c] + epsilon);
    double of_mean = 0.0;
    double of_variance = 0.0;
    for (const std::size_t e : channels[c]) {
      const double distance = input[e] - batch.mean[c];
      gradients.weights[c] += output_gradient[e] * distance / deviation;
      gradients.bias[c] += output_gradient[e];
      of_mean -= output_gradient[e] * scale[c] / deviation;
      of_variance -= output_gradient[e] * scale[c] * distance / (2.0 * deviation * deviation * deviation);
    }
    for (const std::size_t e : channels[c]) {
      gradients.input[e] = output_gradient[e] * scale[c] / deviation + of_mean / count +
                           of_variance * 2.0 * (input[e] - batch.mean[c]) / count;
    }
  }
  return gradients;
}

namespace {

// Philox4x32-10, from the paper's pseudocode (Salmon et al., SC 2011, section 3.3).
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> x, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = 0xD2511F53ULL * x[0];
    const std::uint64_t b = 0xCD9E8D57ULL * x[2];
    x = {static_cast<std::uint32_t>(b >> 32) ^ x[1] ^ key[0], static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32) ^ x[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key = {key[0] + 0x9E3779B9U, key[1] + 0xBB67AE85U};
  }
  return x;
}

}  // namespace

Values dropout_factors(std::int64_t elements, double ratio, std::uint32_t layer, std::uint64_t seed,
                       std::uint64_t task) {
  Values factors;
  for (std::int64_t e = 0; e < elements; ++e) {
    const auto random = philox({static_cast<std::uint32_t>(e / 4), layer, static_cast<std::uint32_t>(task),
                                static_cast<std::uint32_t>(task >> 32)},
                               {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
    const double uniform = random[static_cast<std::size_t>(e % 4)] / 4294967296.0;
    factors.push_back(uniform < ratio ? 0.0 : 1.0 / (1.0 - ratio));
  }
  return factors;
}

Values softmax(std::int64_t classes, const Values& logits) {
  const auto columns = static_cast<std::size_t>(classes);
  Values probabilities;
  for (std::size_t first = 0; first < logits.size(); first += columns) {
    const auto row = logits.begin() + static_cast<std::ptrdiff_t>(first);
    const double largest = *std::max_element(row, row + static_cast<std::ptrdiff_t>(columns));
    double sum = 0.0;
    for (std::size_t c = first; c < first + columns; ++c) sum += std::exp(logits[c] - largest);
    for (std::size_t c = first; c < first + columns; ++c) probabilities.push_back(std::exp(logits[c] - largest) / sum);
  }
  return probabilities;
}

Values softmax_gradient(std::int64_t classes, const Values& logits, const Values& output_gradient) {
  const auto columns = static_cast<std::size_t>(classes);
  const Values p = softmax(classes, logits);
  Values gradient(logits.size());
  for (std::size_t e = 0; e < logits.size(); ++e) {
    for (std::size_t d = 0; d < columns; ++d) {
      const std::size_t other = e / columns * columns + d;
      gradient[e] += output_gradient[other] * p[other] * ((other == e ? 1.0 : 0.0) - p[e]);
    }
  }
  return gradient;
}

namespace {

// The target probability of class `c`.
double target_of(std::size_t c, std::int32_t label, std::size_t classes, double smoothing) {
  return (static_cast<std::size_t>(label) == c ? 1.0 - smoothing : 0.0) + smoothing / static_cast<double>(classes);
}

}  // namespace

double softmax_cross_entropy(std::int64_t classes, const Values& logits, const Labels& labels, double smoothing) {
  const auto columns = static_cast<std::size_t>(classes);
  double loss = 0.0;
  for (std::size_t n = 0; n < labels.size(); ++n) {
    if (labels[n] < 0) continue;
    double largest = -std::numeric_limits<double>::infinity();
    for (std::size_t c = 0; c < columns; ++c) largest = std::fmax(largest, logits[n * columns + c]);
    double sum = 0.0;
    for (std::size_t c = 0; c < columns; ++c) sum += std::exp(logits[n * columns + c] - largest);
    for (std::size_t c = 0; c < columns; ++c) {
      const double target = target_of(c, labels[n], columns, smoothing);
      if (target > 0.0) loss += target * (std::log(sum) + largest - logits[n * columns + c]);
    }
  }
  return loss;
}

Values softmax_cross_entropy_gradient(std::int64_t classes, const Values& logits, const Labels& labels,
                                      double smoothing) {
  const auto columns = static_cast<std::size_t>(classes);
  const Values p = softmax(classes, logits);
  Values gradient(logits.size());
  double labeled = 0.0;
  for (const std::int32_t label : labels) labeled += label < 0 ? 0.0 : 1.0;
  for (std::size_t n = 0; n < labels.size(); ++n) {
    if (labels[n] < 0) continue;
    for (std::size_t c = 0; c < columns; ++c) {
      gradient[n * columns + c] = (p[n * columns + c] - target_of(c, labels[n], columns, smoothing)) / labeled;
    }
  }
  return gradient;
}

std::int64_t count_correct(std::int64_t classes, const Values& logits, const Labels& labels, int most) {
  const auto columns = static_cast<std::ptrdiff_t>(classes);
  std::int64_t correct = 0;
  for (std::size_t n = 0; n < labels.size(); ++n) {
    const auto row = logits.begin() + static_cast<std::ptrdiff_t>(n) * columns;
    std::vector<std::int32_t> order;  // without NaN, largest first
    for (std::int32_t c = 0; c < columns; ++c) {
      if (!std::isnan(row[c])) order.push_back(c);
    }
    std::ranges::stable_sort(order, [&](std::int32_t a, std::int32_t b) { return row[a] > row[b]; });
    order.resize(std::min(order.size(), static_cast<std::size_t>(most)));
    if (labels[n] >= 0 && std::ranges::count(order, labels[n]) > 0) ++correct;
  }
  return correct;
}

}  // namespace arbalest::tests
