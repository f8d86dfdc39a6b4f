// The results of convolutions as products of matrices (image_operands.h): how their sums become tensors.
#pragma once

#include <cstdint>

#include "engine/cuda/kernels/wide.h"
#include "engine/cuda/operators/activation.h"
#include "engine/cuda/products/convolution_sizes.h"
#include "engine/cuda/products/divisor.h"
#include "engine/cuda/products/tiled_product.h"

namespace arbalest::engine::cuda {

// Takes rows of pixels and columns of channels or filters.
template <typename T>
struct ImageResult {
  T* images = nullptr;
  ImageSteps steps = {};
  Divisor pixels = {};  // of an image
  int rows = 0;
  int columns = 0;

  // `addend` is added, in the order of images, which it may be; null: nothing.
  __device__ void write(int row, int column, const float (&values)[kSide][kSide], const T* addend) const {
    const bool in_words = steps.pixel == 1 && pixels.value() % kSide == 0 && row + kSide <= rows;
#pragma unroll  // without it, the values would lie in local memory
    for (int j = 0; j < kSide; ++j) {
      if (column + j >= columns) return;
      const int channel = (column + j) * steps.channel;
      if (in_words) {
        const int place = channel + offset(row);
        Floats<kSide> of_column;
#pragma unroll
        for (int i = 0; i < kSide; ++i) of_column.at[i] = values[i][j];
        store_group<kSide>(addend == nullptr ? of_column : load_group<kSide>(addend + place, 0) + of_column,
                           images + place, 0);
        continue;
      }
#pragma unroll
      for (int i = 0; i < kSide; ++i) {
        if (row + i >= rows) continue;
        const int place = channel + offset(row + i);
        elementwise::store(addend == nullptr ? values[i][j] : elementwise::load(addend[place]) + values[i][j],
                           images[place]);
      }
    }
  }

 private:
  __device__ int offset(int row) const {
    const int image = pixels.quotient(row);
    return image * steps.image + (row - image * pixels.value()) * steps.pixel;
  }
};

template <typename T>
struct InputGradientResult : ImageResult<T> {
  const T* addend = nullptr;

  __device__ void store(int row, int column, const float (&sums)[kSide][kSide]) const {
    this->write(row, column, sums, addend);
  }

  template <typename Visitor>
  __host__ __device__ friend constexpr void visit_addresses(InputGradientResult& of, Visitor&& visit) {
    visit(of.images);
    visit(of.addend);
  }
};

template <typename T>
struct OutputResult : ImageResult<T> {
  const float* bias = nullptr;  // [columns]; null: none
  bool activates = false;
  ActivationFunction activation = {ActivationKind::kRelu};

  __device__ void store(int row, int column, const float (&sums)[kSide][kSide]) const {
    float values[kSide][kSide];
#pragma unroll
    for (int j = 0; j < kSide; ++j) {
      const float of_column = bias == nullptr || column + j >= this->columns ? 0.0F : bias[column + j];
#pragma unroll
      for (int i = 0; i < kSide; ++i) {
        const float sum = bias == nullptr ? sums[i][j] : sums[i][j] + of_column;
        values[i][j] = activates ? output_of(activation, sum) : sum;
      }
    }
    this->write(row, column, values, nullptr);
  }

  template <typename Visitor>
  __host__ __device__ friend constexpr void visit_addresses(OutputResult& of, Visitor&& visit) {
    visit(of.images);
    visit(of.bias);
  }
};

// Takes rows of filters and columns of (tap, channel); a last column is the gradient of the bias.
struct WeightResult {
  float* weights = nullptr;
  float* bias = nullptr;  // [filters]; null: there is no such column
  FilterSteps steps = {};
  Divisor channels = {};
  int filters = 0;
  int columns = 0;  // without that of the bias

  __device__ void store(int row, int column, const float (&sums)[kSide][kSide]) const {
#pragma unroll
    for (int j = 0; j < kSide; ++j) {
      const int at = column + j;
      if (at > columns || (at == columns && bias == nullptr)) return;
      const int tap = channels.quotient(at);
      const int place = tap * steps.tap + (at - tap * channels.value()) * steps.channel;
#pragma unroll
      for (int i = 0; i < kSide; ++i) {
        const int filter = row + i;
        if (filter >= filters) continue;
        if (at == columns) {
          bias[filter] = sums[i][j];
        } else {
          weights[filter * steps.filter + place] = sums[i][j];
        }
      }
    }
  }

  template <typename Visitor>
  __host__ __device__ friend constexpr void visit_addresses(WeightResult& of, Visitor&& visit) {
    visit(of.weights);
    visit(of.bias);
  }
};

}  // namespace arbalest::engine::cuda
