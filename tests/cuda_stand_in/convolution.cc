#include "tests/cuda_stand_in/convolution.h"

#include <cstddef>
#include <vector>

namespace arbalest::tests::cuda_stand_in {

namespace {

std::size_t size(int extent) { return static_cast<std::size_t>(extent); }

std::size_t elements(const Extents& extents) {
  return size(extents.n) * size(extents.c) * size(extents.h) * size(extents.w);
}

// Calls visit(offset in [n, h, w, c] order, offset in the tensor's own order) for every element.
template <typename Visit>
void for_each_place(const Extents& extents, const Visit& visit) {
  const std::size_t pixels = size(extents.h) * size(extents.w);
  const std::size_t channels = size(extents.c);
  for (std::size_t n = 0; n < size(extents.n); ++n) {
    for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
      for (std::size_t c = 0; c < channels; ++c) {
        const std::size_t last = (n * pixels + pixel) * channels + c;
        visit(last, extents.channels_last ? last : (n * channels + c) * pixels + pixel);
      }
    }
  }
}

std::vector<double> read(const Extents& extents, const void* data) {
  std::vector<double> values(elements(extents));
  for_each_place(extents, [&](std::size_t place, std::size_t own) { values[place] = read(extents.number, data, own); });
  return values;
}

void write(const Extents& extents, Scaling scaling, const std::vector<double>& values, void* data) {
  for_each_place(extents,
                 [&](std::size_t place, std::size_t own) { write(extents.number, scaling, values[place], data, own); });
}

// Transposes [filters, taps * channels] or back, so that the innermost loops run over filters.
std::vector<double> transposed(const std::vector<double>& matrix, std::size_t rows) {
  const std::size_t columns = matrix.size() / rows;
  std::vector<double> result(matrix.size());
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      result[column * rows + row] = matrix[row * columns + column];
    }
  }
  return result;
}

std::size_t filters_of_group(const Geometry& g) { return size(g.weights.n / g.groups); }

// Calls visit(input, weights, output) for every output pixel, tap, group, and channel of the group. The arguments are
// the offset of an input element, of the weights of the group's filters for it, and of these filters' outputs.
template <typename Visit>
void for_each_product(const Geometry& g, const Visit& visit) {
  const std::size_t channels = size(g.weights.c);
  const std::size_t filters = size(g.weights.n);
  for (int n = 0; n < g.output.n; ++n) {
    for (int y = 0; y < g.output.h; ++y) {
      for (int x = 0; x < g.output.w; ++x) {
        const std::size_t output =
            ((size(n) * size(g.output.h) + size(y)) * size(g.output.w) + size(x)) * size(g.output.c);
        for (int ky = 0; ky < g.weights.h; ++ky) {
          const int row = y * g.stride_height - g.padding_height + ky * g.dilation_height;
          if (row < 0 || row >= g.input.h) continue;
          for (int kx = 0; kx < g.weights.w; ++kx) {
            const int column = x * g.stride_width - g.padding_width + kx * g.dilation_width;
            if (column < 0 || column >= g.input.w) continue;
            const std::size_t input =
                ((size(n) * size(g.input.h) + size(row)) * size(g.input.w) + size(column)) * size(g.input.c);
            const std::size_t weights = (size(ky) * size(g.weights.w) + size(kx)) * channels;
            for (std::size_t c = 0; c < size(g.input.c); ++c) {
              const std::size_t first = c / channels * filters_of_group(g);
              visit(input + c, (weights + c % channels) * filters + first, output + first);
            }
          }
        }
      }
    }
  }
}

}  // namespace

Extents output_extents(const Geometry& g) {
  return {g.input.n,
          g.weights.n,
          (g.input.h + 2 * g.padding_height - (g.weights.h - 1) * g.dilation_height - 1) / g.stride_height + 1,
          (g.input.w + 2 * g.padding_width - (g.weights.w - 1) * g.dilation_width - 1) / g.stride_width + 1,
          g.output.channels_last,
          g.output.number};
}

void convolve(const Geometry& geometry, Scaling scaling, const void* input, const void* weights, void* output) {
  const std::vector<double> x = read(geometry.input, input);
  const std::vector<double> w = transposed(read(geometry.weights, weights), size(geometry.weights.n));
  std::vector<double> y(elements(geometry.output), 0.0);
  const std::size_t filters = filters_of_group(geometry);
  for_each_product(geometry, [&](std::size_t from, std::size_t tap, std::size_t to) {
    const double factor = x[from];
    for (std::size_t f = 0; f < filters; ++f) y[to + f] += factor * w[tap + f];
  });
  write(geometry.output, scaling, y, output);
}

void convolve_backward_data(const Geometry& geometry, Scaling scaling, const void* weights, const void* output_gradient,
                            void* input_gradient) {
  const std::vector<double> w = transposed(read(geometry.weights, weights), size(geometry.weights.n));
  const std::vector<double> dy = read(geometry.output, output_gradient);
  std::vector<double> dx(elements(geometry.input), 0.0);
  const std::size_t filters = filters_of_group(geometry);
  for_each_product(geometry, [&](std::size_t from, std::size_t tap, std::size_t to) {
    double sum = 0;
    for (std::size_t f = 0; f < filters; ++f) sum += dy[to + f] * w[tap + f];
    dx[from] += sum;
  });
  write(geometry.input, scaling, dx, input_gradient);
}

void convolve_backward_filter(const Geometry& geometry, Scaling scaling, const void* input, const void* output_gradient,
                              void* weights_gradient) {
  const std::vector<double> x = read(geometry.input, input);
  const std::vector<double> dy = read(geometry.output, output_gradient);
  std::vector<double> dw(elements(geometry.weights), 0.0);  // [taps * channels, filters]
  const std::size_t filters = filters_of_group(geometry);
  for_each_product(geometry, [&](std::size_t from, std::size_t tap, std::size_t to) {
    const double factor = x[from];
    for (std::size_t f = 0; f < filters; ++f) dw[tap + f] += factor * dy[to + f];
  });
  write(geometry.weights, scaling, transposed(dw, dw.size() / size(geometry.weights.n)), weights_gradient);
}

}  // namespace arbalest::tests::cuda_stand_in
