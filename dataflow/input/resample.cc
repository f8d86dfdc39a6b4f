#include "dataflow/input/resample.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "engine/error.h"

namespace arbalest::dataflow {

namespace {

// Of each output place along one axis: the first input place that counts, and the weights of that and the next ones.
struct Filter {
  std::vector<int> first;
  std::vector<float> weights;  // [outputs, taps]
  int taps = 0;

  const float* of(int output) const {
    return weights.data() + static_cast<std::size_t>(output) * static_cast<std::size_t>(taps);
  }
};

Filter make_filter(int inputs, double start, double length, int outputs) {
  const double step = length / outputs;
  const double support = std::max(1.0, step);
  Filter filter;
  filter.taps = std::min(inputs, static_cast<int>(std::ceil(2.0 * support)) + 1);
  filter.first.resize(static_cast<std::size_t>(outputs));
  filter.weights.resize(static_cast<std::size_t>(outputs) * static_cast<std::size_t>(filter.taps));
  for (int output = 0; output < outputs; ++output) {
    const double center = start + (output + 0.5) * step - 0.5;  // in places of inputs
    const int first = std::clamp(static_cast<int>(std::ceil(center - support)), 0, inputs - filter.taps);
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

// One row [width, channels] of what the filter makes of an input row [., channels].
template <int kChannels>
void filter_row(const Filter& filter, const std::uint8_t* input, int width, float* output) {
  for (int x = 0; x < width; ++x) {
    const std::uint8_t* pixels =
        input + static_cast<std::ptrdiff_t>(filter.first[static_cast<std::size_t>(x)]) * kChannels;
    const float* weights = filter.of(x);
    float sums[kChannels] = {};
    for (int tap = 0; tap < filter.taps; ++tap) {
      for (int c = 0; c < kChannels; ++c) sums[c] += weights[tap] * static_cast<float>(pixels[tap * kChannels + c]);
    }
    for (int c = 0; c < kChannels; ++c) output[x * kChannels + c] = sums[c];
  }
}

}  // namespace

void resample(const DecodedImage& image, const CropBox& box, int height, int width, std::uint8_t* out) {
  ARBALEST_CHECK(image.channels == 1 || image.channels == 3);
  const Filter across = make_filter(image.width, box.left, box.width, width);
  const Filter down = make_filter(image.height, box.top, box.height, height);
  const int first_row = down.first.front();
  const int rows = down.first.back() + down.taps - first_row;
  const int row_values = width * image.channels;
  std::vector<float> filtered(static_cast<std::size_t>(rows) * static_cast<std::size_t>(row_values));
  const auto row_of = [&](int row) { return filtered.data() + static_cast<std::ptrdiff_t>(row) * row_values; };
  for (int row = 0; row < rows; ++row) {
    const std::uint8_t* input =
        image.pixels.data() + static_cast<std::ptrdiff_t>(first_row + row) * image.width * image.channels;
    if (image.channels == 1) {
      filter_row<1>(across, input, width, row_of(row));
    } else {
      filter_row<3>(across, input, width, row_of(row));
    }
  }
  std::vector<float> sums(static_cast<std::size_t>(row_values));
  for (int y = 0; y < height; ++y) {
    std::ranges::fill(sums, 0.0F);
    for (int tap = 0; tap < down.taps; ++tap) {
      const float weight = down.of(y)[tap];
      const float* row = row_of(down.first[static_cast<std::size_t>(y)] + tap - first_row);
      for (int i = 0; i < row_values; ++i) sums[static_cast<std::size_t>(i)] += weight * row[i];
    }
    for (int c = 0; c < image.channels; ++c) {
      std::uint8_t* plane = out + (static_cast<std::ptrdiff_t>(c) * height + y) * width;
      for (int x = 0; x < width; ++x) {
        const float value = sums[static_cast<std::size_t>(x * image.channels + c)];
        plane[x] = static_cast<std::uint8_t>(std::clamp(value + 0.5F, 0.0F, 255.0F));
      }
    }
  }
}

}  // namespace arbalest::dataflow
