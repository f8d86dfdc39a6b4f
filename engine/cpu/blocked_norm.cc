#include "engine/cpu/blocked_norm.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/bfloat16.h"
#include "engine/cpu/layout.h"
#include "engine/cpu/parallel.h"

namespace arbalest::engine::cpu {

namespace {

using Index = std::int64_t;

constexpr int kWidth = 8;  // floats
typedef float Vector __attribute__((vector_size(kWidth * sizeof(float)), may_alias));

Vector load(const float* address) { return *reinterpret_cast<const Vector*>(address); }
void store(const Vector& vector, float* address) { *reinterpret_cast<Vector*>(address) = vector; }

// elementwise::load and elementwise::store of a vector of bfloat16.
typedef std::uint16_t Halves __attribute__((vector_size(kWidth * sizeof(BFloat16)), may_alias));
typedef std::uint32_t Words __attribute__((vector_size(kWidth * sizeof(float))));

Vector load(const BFloat16* address) {
  return std::bit_cast<Vector>(__builtin_convertvector(*reinterpret_cast<const Halves*>(address), Words) << 16U);
}

void store(const Vector& vector, BFloat16* address) {
  const auto bits = std::bit_cast<Words>(vector);
  const Words rounded = bits + 0x7FFFU + ((bits >> 16U) & 1U);
  const Words kept = (bits & 0x7FFFFFFFU) > 0x7F800000U ? bits | 0x00400000U : rounded;
  *reinterpret_cast<Halves*>(address) = __builtin_convertvector(kept >> 16U, Halves);
}

// A number for each channel of a block of `vectors` vectors.
template <int vectors>
struct Block {
  Vector of[vectors];

  Block() : of{} {}
  template <typename T>
  explicit Block(const T* address) {
    for (int v = 0; v < vectors; ++v) of[v] = load(address + v * kWidth);
  }
  void store(float* address) const {
    for (int v = 0; v < vectors; ++v) arbalest::engine::cpu::store(of[v], address + v * kWidth);
  }
};

// Calls body(run, offset of the run's first number, channel of that) for all runs of pixels; those of one thread follow
// each other, from the last to the first if `backwards`.
template <typename Body>
void for_runs(const BlockedImages& of, int threads, bool backwards, const Body& body) {
  for_each_part(threads, of.runs(), [&](Index part) {
    const Index run = backwards ? of.runs() - 1 - part : part;
    body(run, run * of.pixels * of.block, run % of.blocks * of.block);
  });
}

// Two numbers per channel and run: those of run r are at partials[2 * block * r] and behind.
template <int vectors>
void store_partials(const Block<vectors>& first, const Block<vectors>& second, Index run, float* partials) {
  float* target = partials + run * 2 * vectors * kWidth;
  first.store(target);
  second.store(target + vectors * kWidth);
}

// Mean of a run, and its sum of squared distances from that, for every channel of the block.
template <int vectors, typename T>
void measure_run(const T* x, Index pixels, Index run, float* partials) {
  constexpr Index kBlock = vectors * kWidth;
  const Block<vectors> origin(x);     // not far from the mean, so that squares lose no digits
  Block<vectors> sum[2], squares[2];  // of every other pixel, so that a sum need not wait for the one before
  const auto add = [&](Index pixel, int half) {
    for (int v = 0; v < vectors; ++v) {
      const Vector distance = load(x + pixel * kBlock + v * kWidth) - origin.of[v];
      sum[half].of[v] += distance;
      squares[half].of[v] += distance * distance;
    }
  };
  Index p = 0;
  for (; p + 1 < pixels; p += 2) {
    add(p, 0);
    add(p + 1, 1);
  }
  if (p < pixels) add(p, 0);
  const auto count = static_cast<float>(pixels);
  for (int v = 0; v < vectors; ++v) {
    const Vector total = sum[0].of[v] + sum[1].of[v];
    const Vector distance = total / count;
    squares[0].of[v] = squares[0].of[v] + squares[1].of[v] - total * distance;
    sum[0].of[v] = origin.of[v] + distance;
  }
  store_partials(sum[0], squares[0], run, partials);
}

template <int vectors, bool relu, bool adds, typename T>
void normalize_run(const T* x, const T* addend, const NormTerms& terms, Index channel, Index pixels, T* y) {
  constexpr Index kBlock = vectors * kWidth;
  const Block<vectors> mean(terms.mean + channel), factor(terms.factor + channel), shift(terms.shift + channel);
  for (Index p = 0; p < pixels; ++p) {
    for (int v = 0; v < vectors; ++v) {
      const Index i = p * kBlock + v * kWidth;
      Vector value = (load(x + i) - mean.of[v]) * factor.of[v] + shift.of[v];
      if constexpr (adds) value += load(addend + i);
      if constexpr (relu) value = value < 0.0F ? Vector{} : value;  // NaN stays NaN
      store(value, y + i);
    }
  }
}

enum class Behind { kNothing, kRelu, kAddendAndRelu };  // the normalization

// dy before ReLU, given what ReLU let pass.
template <int vectors, Behind behind, typename T>
Vector undo_relu(const BlockedGradients<T>& task, const Vector& distance, const Vector& factor, const Vector& shift,
                 Index i) {
  const Vector arriving = load(task.output_gradient + i);
  if constexpr (behind == Behind::kNothing) return arriving;
  Vector value;
  if constexpr (behind == Behind::kRelu) {
    value = distance * factor + shift;  // the same bits as in forward, before they were rounded
  } else {
    value = load(task.output + i);
  }
  return value > 0.0F ? arriving : Vector{};
}

// Sums over a run, by channel: of the gradient, and of the gradient times the distance from the mean.
template <int vectors, Behind behind, typename T>
void sum_run(const BlockedGradients<T>& task, const NormTerms& terms, Index offset, Index channel, Index pixels,
             Index run, float* partials) {
  constexpr Index kBlock = vectors * kWidth;
  const Block<vectors> mean(terms.mean + channel), factor(terms.factor + channel), shift(terms.shift + channel);
  Block<vectors> sum, product;
  for (Index p = 0; p < pixels; ++p) {
    for (int v = 0; v < vectors; ++v) {
      const Index i = offset + p * kBlock + v * kWidth;
      const Vector distance = load(task.input + i) - mean.of[v];
      const Vector gradient = undo_relu<vectors, behind>(task, distance, factor.of[v], shift.of[v], i);
      if constexpr (behind == Behind::kAddendAndRelu) store(gradient, task.addend_gradient + i);
      sum.of[v] += gradient;
      product.of[v] += gradient * distance;
    }
  }
  store_partials(sum, product, run, partials);
}

// dx = factor (dy - mean of dy - (x - mean) slope). What ReLU took away is already gone from the addend's gradient.
template <int vectors, Behind behind, typename T>
void differentiate_run(const BlockedGradients<T>& task, const NormTerms& terms, const float* means, const float* slopes,
                       Index offset, Index channel, Index pixels) {
  constexpr Index kBlock = vectors * kWidth;
  const Block<vectors> mean(terms.mean + channel), factor(terms.factor + channel), shift(terms.shift + channel);
  const Block<vectors> mean_gradient(means + channel), slope(slopes + channel);
  for (Index p = 0; p < pixels; ++p) {
    for (int v = 0; v < vectors; ++v) {
      const Index i = offset + p * kBlock + v * kWidth;
      const Vector distance = load(task.input + i) - mean.of[v];
      Vector gradient;
      if constexpr (behind == Behind::kAddendAndRelu) {
        gradient = load(static_cast<const T*>(task.addend_gradient) + i);
      } else {
        gradient = undo_relu<vectors, behind>(task, distance, factor.of[v], shift.of[v], i);
      }
      store(factor.of[v] * (gradient - mean_gradient.of[v] - distance * slope.of[v]), task.input_gradient + i);
    }
  }
}

// Calls body.template operator()<vectors>() for the block that the images have.
template <typename Body>
void for_block(const BlockedImages& of, const Body& body) {
  if (of.block == 2 * kWidth) {
    body.template operator()<2>();
  } else {
    body.template operator()<1>();
  }
}

// The two numbers of every run of a channel, from the first example to the last.
template <typename Body>
void for_partials(const BlockedImages& of, const float* partials, Index channel, const Body& body) {
  for (Index n = 0; n < of.examples; ++n) {
    const float* both = partials + (n * of.blocks + channel / of.block) * 2 * of.block + channel % of.block;
    body(n, both[0], both[of.block]);
  }
}

void set_terms(const BlockedImages& of, Index channel, float mean, float variance, float epsilon, const float* scale,
               const float* shift, const NormTerms& terms) {
  const bool is_padding = channel >= of.channels;
  const float inverse = is_padding ? 0.0F : 1.0F / std::sqrt(variance + epsilon);
  terms.mean[channel] = is_padding ? 0.0F : mean;
  terms.inverse[channel] = inverse;
  terms.factor[channel] = is_padding ? 0.0F : scale[channel] * inverse;
  terms.shift[channel] = is_padding ? 0.0F : shift[channel];
}

}  // namespace

std::optional<BlockedImages> blocked_images(const dnnl::memory::desc& images) {
  const auto strides = image_strides(images);
  if (!strides.has_value() || (strides->block != kWidth && strides->block != 2 * kWidth)) return std::nullopt;
  const dnnl::memory::dims extents = images.dims();
  const BlockedImages of{extents[0], extents[1], (extents[1] + strides->block - 1) / strides->block,
                         extents[2] * extents[3], strides->block};
  const bool is_dense = strides->column == of.block && strides->row == extents[3] * of.block &&
                        strides->channel_block == of.pixels * of.block &&
                        strides->example == of.blocks * strides->channel_block;
  return is_dense ? std::optional(of) : std::nullopt;
}

std::int64_t partial_floats(const BlockedImages& of) { return 2 * (of.runs() * of.block + of.padded_channels()); }

template <typename T>
void measure_blocked(const BlockedImages& of, const T* input, const float* scale, const float* shift, float epsilon,
                     float* partials, const NormTerms& terms, float* unbiased, int threads) {
  for_block(of, [&]<int vectors>() {
    for_runs(of, threads, true,
             [&](Index run, Index offset, Index) { measure_run<vectors>(input + offset, of.pixels, run, partials); });
  });
  // Runs joined as Chan, Golub and LeVeque (1979) do it, so that a mean far from zero costs no precision.
  const auto numbers = static_cast<double>(of.numbers_of_channel());
  const auto pixels = static_cast<double>(of.pixels);
  for (Index c = 0; c < of.padded_channels(); ++c) {
    double mean = 0.0;
    double squares = 0.0;
    for_partials(of, partials, c, [&](Index n, double run_mean, double run_squares) {
      const auto before = static_cast<double>(n);  // in runs
      const double distance = run_mean - mean;
      mean += distance / (before + 1.0);
      squares += run_squares + distance * distance * pixels * before / (before + 1.0);
    });
    set_terms(of, c, static_cast<float>(mean), static_cast<float>(squares / numbers), epsilon, scale, shift, terms);
    if (c < of.channels) unbiased[c] = static_cast<float>(squares / (numbers - 1.0));
  }
}

void use_statistics(const BlockedImages& of, const float* scale, const float* shift, const float* mean,
                    const float* variance, float epsilon, const NormTerms& terms) {
  for (Index c = 0; c < of.padded_channels(); ++c) {
    const Index given = std::min(c, of.channels - 1);
    set_terms(of, c, mean[given], variance[given], epsilon, scale, shift, terms);
  }
}

template <typename T>
void normalize_blocked(const BlockedImages& of, const T* input, const T* addend, const NormTerms& terms, bool relu,
                       T* output, int threads) {
  for_block(of, [&]<int vectors>() {
    const auto run = [&]<bool with_relu, bool adds>() {
      for_runs(of, threads, false, [&](Index, Index offset, Index channel) {
        normalize_run<vectors, with_relu, adds>(input + offset, adds ? addend + offset : nullptr, terms, channel,
                                                of.pixels, output + offset);
      });
    };
    if (addend != nullptr) {
      relu ? run.template operator()<true, true>() : run.template operator()<false, true>();
    } else {
      relu ? run.template operator()<true, false>() : run.template operator()<false, false>();
    }
  });
}

template <typename T>
void blocked_gradients(const BlockedImages& of, const BlockedGradients<T>& task, const NormTerms& terms,
                       float* partials, int threads) {
  const auto run_all = [&]<int vectors, Behind behind>() {
    for_runs(of, threads, true, [&](Index run, Index offset, Index channel) {
      sum_run<vectors, behind>(task, terms, offset, channel, of.pixels, run, partials);
    });
    const auto numbers = static_cast<double>(of.numbers_of_channel());
    float* means = partials + of.runs() * 2 * of.block;
    float* slopes = means + of.padded_channels();
    for (Index c = 0; c < of.padded_channels(); ++c) {
      double sum = 0.0;
      double product = 0.0;
      for_partials(of, partials, c, [&](Index, double of_run, double product_of_run) {
        sum += of_run;
        product += product_of_run;
      });
      const double inverse = terms.inverse[c];
      means[c] = static_cast<float>(sum / numbers);
      slopes[c] = static_cast<float>(inverse * inverse * product / numbers);
      if (c >= of.channels) continue;
      task.shift_gradient[c] = static_cast<float>(sum);
      task.scale_gradient[c] = static_cast<float>(inverse * product);
    }
    if (task.input_gradient == nullptr) return;
    for_runs(of, threads, false, [&](Index, Index offset, Index channel) {
      differentiate_run<vectors, behind>(task, terms, means, slopes, offset, channel, of.pixels);
    });
  };
  for_block(of, [&]<int vectors>() {
    if (task.addend_gradient != nullptr) {
      run_all.template operator()<vectors, Behind::kAddendAndRelu>();
    } else if (task.relu) {
      run_all.template operator()<vectors, Behind::kRelu>();
    } else {
      run_all.template operator()<vectors, Behind::kNothing>();
    }
  });
}

template void measure_blocked(const BlockedImages&, const float*, const float*, const float*, float, float*,
                              const NormTerms&, float*, int);
template void measure_blocked(const BlockedImages&, const BFloat16*, const float*, const float*, float, float*,
                              const NormTerms&, float*, int);
template void normalize_blocked(const BlockedImages&, const float*, const float*, const NormTerms&, bool, float*, int);
template void normalize_blocked(const BlockedImages&, const BFloat16*, const BFloat16*, const NormTerms&, bool,
                                BFloat16*, int);
template void blocked_gradients(const BlockedImages&, const BlockedGradients<float>&, const NormTerms&, float*, int);
template void blocked_gradients(const BlockedImages&, const BlockedGradients<BFloat16>&, const NormTerms&, float*, int);

}  // namespace arbalest::engine::cpu
