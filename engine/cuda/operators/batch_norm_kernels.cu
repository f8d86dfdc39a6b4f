#include <cmath>

#include "engine/cuda/kernels/channel_groups.h"
#include "engine/cuda/operators/batch_norm.h"

namespace arbalest::engine::cuda {

namespace {

constexpr std::int64_t kGroupsOfThread = 8;  // groups that a thread adds up

template <typename G>
ColumnCut cut_of(const Geometry& of) {
  return cut_columns(of.rows, of.channels, of.pixels, kGroupsOfThread);
}

// The terms of a group's channels.
template <int kChannels>
struct GroupTerms {
  Floats<kChannels> scale;
  Floats<kChannels> shift;
  Floats<kChannels> mean;
  Floats<kChannels> factor;  // 1 / sqrt(variance + epsilon)

  __device__ GroupTerms(const NormTerms& terms, std::int64_t column)
      : scale(load_group<kChannels>(terms.scale, column)),
        shift(load_group<kChannels>(terms.shift, column)),
        mean(load_group<kChannels>(terms.mean, column)),
        factor(load_group<kChannels>(terms.inverse != nullptr ? terms.inverse : terms.variance, column)) {
    if (terms.inverse != nullptr) return;
    for (int c = 0; c < kChannels; ++c) factor.at[c] = 1.0F / std::sqrt(factor.at[c] + terms.epsilon);
  }

  __device__ float normalized(float x, int c) const { return (x - mean.at[c]) * factor.at[c]; }
  // The output before ReLU. Forward and backward compute the same bits, so they agree on where ReLU is active.
  __device__ float output(float normalized, int c) const { return normalized * scale.at[c] + shift.at[c]; }
  // The gradient before ReLU of a batch norm without an addend.
  __device__ float gradient(float normalized, float dy, int c, std::int32_t relu) const {
    return relu != 0 && !(output(normalized, c) > 0.0F) ? 0.0F : dy;
  }
};

template <typename G>
__device__ void measure_channels(const typename G::Element* input, const Geometry of, const ColumnCut cut,
                                 float epsilon, const MeasuredStatistics target, const BlockSums<Moments> shared) {
  const ColumnPlace at(cut);
  Moments moments[G::kChannels] = {};
  if (at.channel < of.channels && at.first_row() < of.rows) {
    RowWalk walk(of, at.channel, at.first_row(), at.row_step(cut));
    const Floats<G::kNumbers> origin = load_group<G::kNumbers>(input, walk.element);  // close to the mean
    float sum[G::kChannels] = {};
    float squares[G::kChannels] = {};
    float count = 0.0F;
    for (std::int64_t r = at.first_row(); r < of.rows; r += at.row_step(cut), walk.advance()) {
      const Floats<G::kNumbers> x = load_group<G::kNumbers>(input, walk.element);
      for (int k = 0; k < G::kNumbers; ++k) {
        const int c = G::channel_of(k);
        const float distance = x.at[k] - origin.at[c];
        sum[c] += distance;
        squares[c] += distance * distance;
      }
      count += static_cast<float>(G::kNumbers / G::kChannels);
    }
    for (int c = 0; c < G::kChannels; ++c) {
      const float mean = sum[c] / count;
      moments[c] = {count, origin.at[c] + mean, squares[c] - sum[c] * mean};
    }
  }
  if (!join_blocks(moments, at, cut, of.channels, shared)) return;
  for (int c = 0; c < G::kChannels; ++c) {
    const std::int64_t channel = at.channel * G::kChannels + c;
    target.batch.mean[channel] = moments[c].mean;
    target.batch.inverse[channel] = 1.0F / std::sqrt(moments[c].squares / moments[c].count + epsilon);
    target.mean[channel] = moments[c].mean;
    target.unbiased[channel] = moments[c].squares / (moments[c].count - 1.0F);
  }
}

template <typename G>
__device__ void normalize_channels(const typename G::Element* input, const typename G::Element* addend,
                                   typename G::Element* output, const Geometry of, const NormTerms terms) {
  for_elements(of, [&](std::int64_t i, std::int64_t column) {
    const GroupTerms<G::kChannels> of_group(terms, column);
    Floats<G::kNumbers> y = load_group<G::kNumbers>(input, i);
    for (int k = 0; k < G::kNumbers; ++k) {
      const int c = G::channel_of(k);
      y.at[k] = of_group.output(of_group.normalized(y.at[k], c), c);
    }
    if (addend != nullptr) {
      const Floats<G::kNumbers> added = load_group<G::kNumbers>(addend, i);
      for (int k = 0; k < G::kNumbers; ++k) y.at[k] += added.at[k];
    }
    if (terms.relu != 0) {
      for (int k = 0; k < G::kNumbers; ++k) y.at[k] = y.at[k] < 0.0F ? 0.0F : y.at[k];  // NaN stays NaN
    }
    store_group(y, output, i);
  });
}

template <typename G>
__device__ void sum_channel_gradients(const typename G::Element* input, const typename G::Element* output_gradient,
                                      const NormAddition<typename G::Element> addition, const Geometry of,
                                      const ColumnCut cut, const NormTerms terms, const NormGradients target,
                                      const BlockSums<GradientSums> shared) {
  const ColumnPlace at(cut);
  GradientSums sums[G::kChannels] = {};
  if (at.channel < of.channels && at.first_row() < of.rows) {
    const GroupTerms<G::kChannels> of_group(terms, at.channel);
    RowWalk walk(of, at.channel, at.first_row(), at.row_step(cut));
    for (std::int64_t r = at.first_row(); r < of.rows; r += at.row_step(cut), walk.advance()) {
      const Floats<G::kNumbers> x = load_group<G::kNumbers>(input, walk.element);
      Floats<G::kNumbers> gradient = load_group<G::kNumbers>(output_gradient, walk.element);
      if (addition.gradient != nullptr) {
        const Floats<G::kNumbers> y = load_group<G::kNumbers>(addition.output, walk.element);
        for (int k = 0; k < G::kNumbers; ++k) gradient.at[k] = y.at[k] > 0.0F ? gradient.at[k] : 0.0F;
        store_group(gradient, addition.gradient, walk.element);
      }
      for (int k = 0; k < G::kNumbers; ++k) {
        const int c = G::channel_of(k);
        const float normalized = of_group.normalized(x.at[k], c);
        const float dy = addition.gradient != nullptr ? gradient.at[k]
                                                      : of_group.gradient(normalized, gradient.at[k], c, terms.relu);
        sums[c].product += dy * normalized;
        sums[c].gradient += dy;
      }
    }
  }
  if (!join_blocks(sums, at, cut, of.channels, shared)) return;
  for (int c = 0; c < G::kChannels; ++c) {
    target.scale[at.channel * G::kChannels + c] = sums[c].product;
    target.shift[at.channel * G::kChannels + c] = sums[c].gradient;
  }
}

template <typename G>
__device__ void find_group_gradient(const typename G::Element* input, const typename G::Element* output_gradient,
                                    typename G::Element* input_gradient, const Geometry of, const NormTerms terms,
                                    const NormGradients sums, const float share) {
  for_elements(of, [&](std::int64_t i, std::int64_t column) {
    const GroupTerms<G::kChannels> of_group(terms, column);
    const Floats<G::kChannels> scale_sum = load_group<G::kChannels>(sums.scale, column);
    const Floats<G::kChannels> shift_sum = load_group<G::kChannels>(sums.shift, column);
    const Floats<G::kNumbers> x = load_group<G::kNumbers>(input, i);
    Floats<G::kNumbers> gradient = load_group<G::kNumbers>(output_gradient, i);
    for (int k = 0; k < G::kNumbers; ++k) {
      const int c = G::channel_of(k);
      const float normalized = of_group.normalized(x.at[k], c);
      const float dy = of_group.gradient(normalized, gradient.at[k], c, terms.relu);
      const float centered = dy - (shift_sum.at[c] + normalized * scale_sum.at[c]) * share;
      gradient.at[k] = of_group.scale.at[c] * of_group.factor.at[c] * centered;
    }
    store_group(gradient, input_gradient, i);
  });
}

template <typename T>
std::size_t partial_bytes(const Geometry& of) {
  static_assert(sizeof(Moments) >= sizeof(GradientSums));
  std::size_t bytes = 0;
  with_groups<T>(of, [&]<typename G>(G, const Geometry& groups) {
    const std::int64_t slices = cut_of<G>(groups).slices;
    if (slices > 1) bytes = static_cast<std::size_t>(slices * of.channels) * sizeof(Moments);
  });
  return bytes;
}

}  // namespace

std::size_t norm_partial_bytes(const Geometry& of, std::size_t element_size) {
  return element_size == sizeof(BFloat16) ? partial_bytes<BFloat16>(of) : partial_bytes<float>(of);
}

template <typename T>
void measure(const T* input, const Geometry& of, float epsilon, const MeasuredStatistics& target,
             const BlockSums<Moments>& shared, const TeamStream& stream) {
  with_groups<T>(of, [&]<typename G>(G, const Geometry& groups) {
    const ColumnCut cut = cut_of<G>(groups);
    launch<measure_channels<G>>(cut.blocks(), stream, input, groups, cut, epsilon, target, shared);
  });
}

template <typename T>
void normalize(const T* input, const T* addend, T* output, const Geometry& of, const NormTerms& terms,
               const TeamStream& stream) {
  with_groups<T>(of, [&]<typename G>(G, const Geometry& groups) {
    launch<normalize_channels<G>>(blocks_for(groups.rows * groups.channels), stream, input, addend, output, groups,
                                  terms);
  });
}

template <typename T>
void sum_gradients(const T* input, const T* output_gradient, const NormAddition<T>& addition, const Geometry& of,
                   const NormTerms& terms, const NormGradients& target, const BlockSums<GradientSums>& shared,
                   const TeamStream& stream) {
  with_groups<T>(of, [&]<typename G>(G, const Geometry& groups) {
    const ColumnCut cut = cut_of<G>(groups);
    launch<sum_channel_gradients<G>>(cut.blocks(), stream, input, output_gradient, addition, groups, cut, terms, target,
                                     shared);
  });
}

template <typename T>
void find_input_gradient(const T* input, const T* output_gradient, T* input_gradient, const Geometry& of,
                         const NormTerms& terms, const NormGradients& sums, bool constant_statistics,
                         const TeamStream& stream) {
  with_groups<T>(of, [&]<typename G>(G, const Geometry& groups) {
    const auto numbers = static_cast<float>(groups.rows * (G::kNumbers / G::kChannels));
    const float share = constant_statistics ? 0.0F : 1.0F / numbers;  // of a sum in its mean
    launch<find_group_gradient<G>>(blocks_for(groups.rows * groups.channels), stream, input, output_gradient,
                                   input_gradient, groups, terms, sums, share);
  });
}

#define ARBALEST_INSTANTIATE(T)                                                                                      \
  template void measure(const T*, const Geometry&, float, const MeasuredStatistics&, const BlockSums<Moments>&,      \
                        const TeamStream&);                                                                          \
  template void normalize(const T*, const T*, T*, const Geometry&, const NormTerms&, const TeamStream&);             \
  template void sum_gradients(const T*, const T*, const NormAddition<T>&, const Geometry&, const NormTerms&,         \
                              const NormGradients&, const BlockSums<GradientSums>&, const TeamStream&);              \
  template void find_input_gradient(const T*, const T*, T*, const Geometry&, const NormTerms&, const NormGradients&, \
                                    bool, const TeamStream&);
ARBALEST_INSTANTIATE(float)
ARBALEST_INSTANTIATE(BFloat16)
#undef ARBALEST_INSTANTIATE

}  // namespace arbalest::engine::cuda
