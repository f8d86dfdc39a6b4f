// Padding on one side only, taken apart for cuDNN; it needs no GPU.
#include "engine/cuda/convolution/one_sided_padding.h"

#include "tests/support/catch.h"
#include "tests/support/numbers.h"
#include "tests/support/reference_ops.h"

namespace arbalest::tests {
namespace {

using engine::Extent2d;
using engine::Shape;
using engine::Window;
using engine::cuda::EvenlyPadded;
using engine::cuda::pad_evenly;

// The images with their zeros on one side.
Values with_zeros(const EvenlyPadded& padded, const Shape& shape, const Values& images) {
  Values result(static_cast<std::size_t>(padded.images.elements()));
  std::size_t read = 0;
  for (std::int64_t plane = 0; plane < shape[0] * shape[1]; ++plane) {
    for (std::int64_t y = 0; y < shape[2]; ++y) {
      for (std::int64_t x = 0; x < shape[3]; ++x) {
        const std::int64_t row = plane * padded.images[2] + padded.before.height + y;
        result[static_cast<std::size_t>(row * padded.images[3] + padded.before.width + x)] = images[read++];
      }
    }
  }
  return result;
}

}  // namespace

TEST_CASE("evenly padded images give the same convolution") {
  const auto [window, before] = GENERATE(table<Window, Extent2d>({
      {{{3, 3}, {1, 1}, {1, 1}}, {0, 0}},
      {{{3, 3}, {2, 2}, {0, 1}, {1, 1}}, {0, 0}},
      {{{3, 3}, {2, 2}, {1, 1}, {-1, -1}}, {1, 1}},
      {{{4, 3}, {1, 2}, {3, 1}, {-2, 1}}, {2, 0}},
      {{{2, 3}, {1, 1}, {1, 2}, {2, -1}, {2, 1}}, {0, 1}},
  }));
  const Shape shape{2, 3, 6, 5};
  const Values images = random_values(shape.elements(), 1);
  const Values weights = random_values(4 * 3 * window.kernel.height * window.kernel.width, 2);
  const EvenlyPadded padded = pad_evenly(shape, window);
  CHECK(padded.before == before);
  CHECK(padded.window.extra_padding == Extent2d{0, 0});
  CHECK(conv2d_shape(padded.images, 4, padded.window) == conv2d_shape(shape, 4, window));
  const Values expected = conv2d(shape, images, weights, {}, 4, window);
  const Values got = conv2d(padded.images, with_zeros(padded, shape, images), weights, {}, 4, padded.window);
  CHECK(relative_error(got, expected) < 1e-12);
}

}  // namespace arbalest::tests
