#include "tests/support/reference_ops.h"

namespace arbalest::tests {

using engine::Shape;

namespace {

std::size_t joined_size(const std::vector<Shape>& shapes) {
  std::size_t size = 0;
  for (const Shape& shape : shapes) size += static_cast<std::size_t>(shape.elements());
  return size;
}

// Calls visit(input, element of that input, element of the joined tensor) for all elements.
template <typename Visit>
void for_each_joined(const std::vector<Shape>& shapes, const Visit& visit) {
  std::size_t joined = 0;
  for (std::int64_t n = 0; n < shapes[0][0]; ++n) {
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      const auto size = static_cast<std::size_t>(shapes[k].elements_per_example());
      for (std::size_t e = 0; e < size; ++e) visit(k, static_cast<std::size_t>(n) * size + e, joined++);
    }
  }
}

// Calls visit(element of the input, element of the output) for all elements that a padded shortcut copies.
template <typename Visit>
void for_each_shared(const Shape& shape, std::int64_t channels, std::int64_t stride, const Visit& visit) {
  const std::int64_t height = (shape[2] - 1) / stride + 1;
  const std::int64_t width = (shape[3] - 1) / stride + 1;
  for (std::int64_t n = 0; n < shape[0]; ++n) {
    for (std::int64_t c = 0; c < shape[1]; ++c) {
      for (std::int64_t y = 0; y < height; ++y) {
        for (std::int64_t x = 0; x < width; ++x) {
          const std::int64_t from = ((n * shape[1] + c) * shape[2] + y * stride) * shape[3] + x * stride;
          const std::int64_t to = ((n * channels + (channels - shape[1]) / 2 + c) * height + y) * width + x;
          visit(static_cast<std::size_t>(from), static_cast<std::size_t>(to));
        }
      }
    }
  }
}

}  // namespace

Values concat(const std::vector<Shape>& shapes, const std::vector<Values>& inputs) {
  Values joined(joined_size(shapes));
  for_each_joined(shapes, [&](std::size_t k, std::size_t from, std::size_t to) { joined[to] = inputs[k][from]; });
  return joined;
}

std::vector<Values> split(const std::vector<Shape>& shapes, const Values& joined) {
  std::vector<Values> parts;
  for (const Shape& shape : shapes) parts.emplace_back(static_cast<std::size_t>(shape.elements()));
  for_each_joined(shapes, [&](std::size_t k, std::size_t to, std::size_t from) { parts[k][to] = joined[from]; });
  return parts;
}

Values padded_shortcut(const Shape& shape, const Values& input, std::int64_t channels, std::int64_t stride) {
  const std::int64_t pixels = ((shape[2] - 1) / stride + 1) * ((shape[3] - 1) / stride + 1);
  Values output(static_cast<std::size_t>(shape[0] * channels * pixels));
  for_each_shared(shape, channels, stride, [&](std::size_t from, std::size_t to) { output[to] = input[from]; });
  return output;
}

Values padded_shortcut_gradient(const Shape& shape, std::int64_t channels, std::int64_t stride,
                                const Values& output_gradient) {
  Values gradient(static_cast<std::size_t>(shape.elements()));
  for_each_shared(shape, channels, stride,
                  [&](std::size_t to, std::size_t from) { gradient[to] = output_gradient[from]; });
  return gradient;
}

}  // namespace arbalest::tests
