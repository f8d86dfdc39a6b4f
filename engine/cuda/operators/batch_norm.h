// The kernels of batch norm: two for forward in training, one at inference, two for backward.
#pragma once

#include <cstdint>

#include "engine/cuda/kernels/channel_rows.h"
#include "engine/cuda/kernels/channel_sums.h"
#include "engine/cuda/runtime/team_stream.h"

namespace arbalest::engine::cuda {

// Statistics of the mini-batch that backward reads; [channels] each.
struct BatchStatistics {
  float* mean;
  float* inverse;  // 1 / sqrt(variance + epsilon), with the biased variance
};

// Statistics that forward computes; [channels] each. The last two are the targets of the running statistics.
struct MeasuredStatistics {
  BatchStatistics batch;
  float* mean;
  float* unbiased;  // unbiased variance

  template <typename Visitor>
  __host__ __device__ friend constexpr void visit_addresses(MeasuredStatistics& of, Visitor&& visit) {
    visit(of.batch.mean);
    visit(of.batch.inverse);
    visit(of.mean);
    visit(of.unbiased);
  }
};

// Parameters and statistics; [channels] each. `inverse` is set for the mini-batch's statistics, `variance` for the
// running ones; the other is null.
struct NormTerms {
  const float* scale;
  const float* shift;
  const float* mean;
  const float* inverse;
  const float* variance;
  float epsilon;
  std::int32_t relu;  // 1 or 0

  template <typename Visitor>
  __host__ __device__ friend constexpr void visit_addresses(NormTerms& of, Visitor&& visit) {
    visit(of.scale);
    visit(of.shift);
    visit(of.mean);
    visit(of.inverse);
    visit(of.variance);
  }
};

// [channels] each. scale: the sum of dy times the normalized x. shift: the sum of dy.
struct NormGradients {
  float* scale;
  float* shift;

  template <typename Visitor>
  __host__ __device__ friend constexpr void visit_addresses(NormGradients& of, Visitor&& visit) {
    visit(of.scale);
    visit(of.shift);
  }
};

// Count, mean and sum of squared distances of some numbers of a channel. They are joined as in Chan, Golub and LeVeque
// (1979), so that the variance stays precise if the mean is far from zero.
struct Moments {
  float count;
  float mean;
  float squares;  // sum of (x - mean)^2

  __device__ Moments joined(const Moments& other) const {
    if (other.count == 0.0F) return *this;
    const float total = count + other.count;
    const float distance = other.mean - mean;
    const float share = other.count / total;
    return {total, mean + distance * share, squares + other.squares + distance * distance * (count * share)};
  }
  static __device__ Moments read(const volatile Moments* from) { return {from->count, from->mean, from->squares}; }
};

struct GradientSums {
  float product;  // sum of dy times the normalized x
  float gradient;

  __device__ GradientSums joined(const GradientSums& other) const {
    return {product + other.product, gradient + other.gradient};
  }
  static __device__ GradientSums read(const volatile GradientSums* from) { return {from->product, from->gradient}; }
};

// Bytes of BlockSums::partials for this geometry and element size; equal for Moments and GradientSums.
std::size_t norm_partial_bytes(const Geometry& of, std::size_t element_size);

template <typename T>
void measure(const T* input, const Geometry& of, float epsilon, const MeasuredStatistics& target,
             const BlockSums<Moments>& shared, const TeamStream& stream);

// output = max(0, y + addend), or y without ReLU. `addend` may be null.
template <typename T>
void normalize(const T* input, const T* addend, T* output, const Geometry& of, const NormTerms& terms,
               const TeamStream& stream);

// For a batch norm with an addend: `output` shows where ReLU was active. `gradient` receives the gradient before ReLU;
// it may be the buffer of the output's gradient. Both are null without an addend.
template <typename T>
struct NormAddition {
  const T* output = nullptr;
  T* gradient = nullptr;

  template <typename Visitor>
  __host__ __device__ friend constexpr void visit_addresses(NormAddition& of, Visitor&& visit) {
    visit(of.output);
    visit(of.gradient);
  }
};

template <typename T>
void sum_gradients(const T* input, const T* output_gradient, const NormAddition<T>& addition, const Geometry& of,
                   const NormTerms& terms, const NormGradients& target, const BlockSums<GradientSums>& shared,
                   const TeamStream& stream);

// dx = scale / sqrt(v + epsilon) (dy - mean of dy - n mean of (dy n)), where n is the normalized x; if the statistics
// are constant: dx = scale / sqrt(v + epsilon) dy. `input_gradient` may be `output_gradient`.
template <typename T>
void find_input_gradient(const T* input, const T* output_gradient, T* input_gradient, const Geometry& of,
                         const NormTerms& terms, const NormGradients& sums, bool constant_statistics,
                         const TeamStream& stream);

}  // namespace arbalest::engine::cuda
