#include "dataflow/input/images/resample.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <vector>

#include "engine/base/error.h"

namespace arbalest::dataflow {

namespace {

// The filter along one axis: for each output place, the first contributing input place, and the weights from there on.
struct Filter {
  std::vector<int> first;
  std::vector<float> weights;  // [outputs, taps]
  int taps = 0;

  const float* of(int output) const {
    return weights.data() + static_cast<std::size_t>(output) * static_cast<std::size_t>(taps);
  }
};

// The number of taps, and the first input of an output, along one axis.
struct Taps {
  Taps(int inputs, double start, double length, int outputs)
      : step(length / outputs),
        support(std::max(1.0, step)),
        count(std::min(inputs, static_cast<int>(std::ceil(2.0 * support)) + 1)),
        last_first(inputs - count),
        begin(start) {}

  double center(int output) const { return begin + (output + 0.5) * step - 0.5; }  // in input pixels
  int first(int output) const {
    return std::clamp(static_cast<int>(std::ceil(center(output) - support)), 0, last_first);
  }

  double step;
  double support;
  int count;
  int last_first;
  double begin;
};

Filter make_filter(int inputs, double start, double length, int outputs) {
  const Taps taps(inputs, start, length, outputs);
  Filter filter;
  filter.taps = taps.count;
  filter.first.resize(static_cast<std::size_t>(outputs));
  filter.weights.resize(static_cast<std::size_t>(outputs) * static_cast<std::size_t>(filter.taps));
  for (int output = 0; output < outputs; ++output) {
    const double center = taps.center(output);
    const double support = taps.support;
    const int first = taps.first(output);
    filter.first[static_cast<std::size_t>(output)] = first;
    float* weights = filter.weights.data() + static_cast<std::size_t>(output) * static_cast<std::size_t>(filter.taps);
    double sum = 0.0;
    for (int tap = 0; tap < filter.taps; ++tap) sum += std::max(0.0, 1.0 - std::abs(first + tap - center) / support);
    for (int tap = 0; tap < filter.taps; ++tap) {
      weights[tap] = static_cast<float>(std::max(0.0, 1.0 - std::abs(first + tap - center) / support) / sum);
    }
  }
  return filter;
}

// sums[i] += weight * bytes[i]
void add_scaled(const std::uint8_t* __restrict bytes, float weight, int count, float* __restrict sums) {
  for (int i = 0; i < count; ++i) sums[i] += weight * static_cast<float>(bytes[i]);
}

// The channels of a pixel and the numbers after it: four numbers take no longer than one.
using Pixel = float __attribute__((vector_size(16)));
using Rounded = std::int32_t __attribute__((vector_size(16)));
constexpr int kLanes = 4;

// Filters a row [., channels], whose first pixel has the number `origin`, into one row of each output plane. kLanes - 1
// readable numbers must follow the row.
template <int channels>
void filter_row(const Filter& filter, int origin, const float* row, int width, std::ptrdiff_t plane_bytes,
                std::uint8_t* out) {
  for (int x = 0; x < width; ++x) {
    const float* place = row + (filter.first[static_cast<std::size_t>(x)] - origin) * channels;
    const float* weights = filter.of(x);
    Pixel sum{0.5F, 0.5F, 0.5F, 0.5F};  // 0.5: the conversion then rounds
    for (int tap = 0; tap < filter.taps; ++tap, place += channels) {
      Pixel pixel;
      std::memcpy(&pixel, place, sizeof(pixel));
      sum += weights[tap] * pixel;
    }
    const auto rounded = __builtin_convertvector(sum, Rounded);  // in [0, 255]: weights are positive and add up to 1
    for (int c = 0; c < channels; ++c) out[c * plane_bytes + x] = static_cast<std::uint8_t>(rounded[c]);
  }
}

}  // namespace

PixelRange resampled_range(int inputs, double start, double length, int outputs) {
  const Taps taps(inputs, start, length, outputs);
  const int first = taps.first(0);
  return {first, taps.first(outputs - 1) + taps.count - first};
}

// The vertical pass comes first: it runs along whole rows, which suits vector units, and leaves few rows for the
// horizontal pass.
void resample(const DecodedImage& image, const CropBox& box, int height, int width, std::uint8_t* out) {
  ARBALEST_CHECK(image.channels == 1 || image.channels == 3);
  const Filter across = make_filter(image.whole.width, box.left, box.width, width);
  const Filter down = make_filter(image.whole.height, box.top, box.height, height);
  const int first_column = across.first.front();
  const int row_values = (across.first.back() + across.taps - first_column) * image.channels;
  std::vector<float> row(static_cast<std::size_t>(row_values + kLanes - 1));
  const std::ptrdiff_t plane_bytes = std::ptrdiff_t{height} * width;
  for (int y = 0; y < height; ++y) {
    std::ranges::fill(row, 0.0F);
    for (int tap = 0; tap < down.taps; ++tap) {
      const std::ptrdiff_t input_row = down.first[static_cast<std::size_t>(y)] + tap - image.top;
      add_scaled(image.pixels.data() + (input_row * image.width + first_column - image.left) * image.channels,
                 down.of(y)[tap], row_values, row.data());
    }
    std::uint8_t* out_row = out + std::ptrdiff_t{y} * width;
    if (image.channels == 1) {
      filter_row<1>(across, first_column, row.data(), width, plane_bytes, out_row);
    } else {
      filter_row<3>(across, first_column, row.data(), width, plane_bytes, out_row);
    }
  }
}

}  // namespace arbalest::dataflow
