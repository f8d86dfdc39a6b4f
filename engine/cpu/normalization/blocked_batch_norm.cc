#include "engine/cpu/normalization/blocked_batch_norm.h"

#include <algorithm>
#include <cmath>

#include "engine/cpu/lanes/kernels.h"
#include "engine/cpu/lanes/lanes.h"
#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/runtime/parallel.h"

namespace arbalest::engine::cpu {

namespace {

using Index = std::int64_t;

// Calls body(run, offset of the run's first number, place of that number) for all runs of pixels. A thread's runs are
// consecutive, from the last to the first if `backwards`.
template <typename Body>
void for_runs(const BlockedImages& of, int threads, bool backwards, const Body& body) {
  for_each_part(threads, of.runs(), [&](Index part) {
    const Index run = backwards ? of.runs() - 1 - part : part;
    body(run, run * of.pixels * of.block, run % of.blocks * of.block);
  });
}

// Returns the address at which a run stores two numbers for each place of its block.
float* partials_of(const BlockedImages& of, Index run, float* partials) { return partials + run * 2 * of.block; }

// Visits the two numbers of every example of a channel, in order.
template <typename Body>
void for_partials(const BlockedImages& of, const float* partials, Index channel, const Body& body) {
  for (Index n = 0; n < of.examples; ++n) {
    const Index place = channel * of.lanes + n % of.lanes;
    const float* both = partials + (n / of.lanes * of.blocks + place / of.block) * 2 * of.block + place % of.block;
    body(n, both[0], both[of.block]);
  }
}

// Calls body(place) for the places of a channel in vectors of [places].
template <typename Body>
void for_places(const BlockedImages& of, Index channel, const Body& body) {
  for (Index place = channel * of.lanes; place < (channel + 1) * of.lanes; ++place) body(place);
}

void set_terms(const BlockedImages& of, Index channel, float mean, float variance, float epsilon, const float* scale,
               const float* shift, const NormTerms& terms) {
  const bool is_padding = channel >= of.channels;
  const float inverse = is_padding ? 0.0F : 1.0F / std::sqrt(variance + epsilon);
  for_places(of, channel, [&](Index place) {
    terms.mean[place] = is_padding ? 0.0F : mean;
    terms.inverse[place] = inverse;
    terms.factor[place] = is_padding ? 0.0F : scale[channel] * inverse;
    terms.shift[place] = is_padding ? 0.0F : shift[channel];
  });
}

}  // namespace

std::optional<BlockedImages> blocked_images(const dnnl::memory::desc& images) {
  const dnnl::memory::dims extents = images.dims();
  if (lies_in_lanes(images)) {
    return BlockedImages{extents[0], extents[1], extents[1], extents[2] * extents[3], kLanes, kLanes};
  }
  const auto strides = image_strides(images);
  if (!strides.has_value() || (strides->block != 8 && strides->block != 16)) return std::nullopt;
  const BlockedImages of{extents[0], extents[1], (extents[1] + strides->block - 1) / strides->block,
                         extents[2] * extents[3], strides->block};
  const bool is_dense = strides->column == of.block && strides->row == extents[3] * of.block &&
                        strides->channel_block == of.pixels * of.block &&
                        strides->example == of.blocks * strides->channel_block;
  return is_dense ? std::optional(of) : std::nullopt;
}

std::int64_t partial_floats(const BlockedImages& of) { return 2 * (of.runs() * of.block + of.places()); }

template <typename T>
void measure_blocked(const BlockedImages& of, const T* input, const float* scale, const float* shift, float epsilon,
                     float* partials, const NormTerms& terms, float* mean, float* unbiased, int threads) {
  const auto measure = norm_runs<T>(of.block).measure;
  for_runs(of, threads, true,
           [&](Index run, Index offset, Index) { measure(input + offset, of.pixels, partials_of(of, run, partials)); });
  // Runs are combined by Chan, Golub and LeVeque (1979), so that the variance stays precise if the mean is far from 0.
  const auto numbers = static_cast<double>(of.numbers_of_channel());
  const auto pixels = static_cast<double>(of.pixels);
  for (Index c = 0; c < of.padded_channels(); ++c) {
    double joined = 0.0;  // mean of the runs so far
    double squares = 0.0;
    for_partials(of, partials, c, [&](Index n, double run_mean, double run_squares) {
      const auto before = static_cast<double>(n);  // in runs
      const double distance = run_mean - joined;
      joined += distance / (before + 1.0);
      squares += run_squares + distance * distance * pixels * before / (before + 1.0);
    });
    set_terms(of, c, static_cast<float>(joined), static_cast<float>(squares / numbers), epsilon, scale, shift, terms);
    if (c >= of.channels) continue;
    mean[c] = static_cast<float>(joined);
    unbiased[c] = static_cast<float>(squares / (numbers - 1.0));
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
  const auto normalize = norm_runs<T>(of.block).normalize[relu ? 1 : 0][addend != nullptr ? 1 : 0];
  for_runs(of, threads, false, [&](Index, Index offset, Index place) {
    normalize(input + offset, addend != nullptr ? addend + offset : nullptr, terms, place, of.pixels, output + offset);
  });
}

template <typename T>
void blocked_gradients(const BlockedImages& of, const BlockedGradients<T>& task, const NormTerms& terms,
                       float* partials, int threads) {
  const BehindNorm behind = task.addend_gradient != nullptr ? BehindNorm::kAddendAndRelu
                            : task.relu                     ? BehindNorm::kRelu
                                                            : BehindNorm::kNothing;
  const NormRuns<T>& loops = norm_runs<T>(of.block);
  const auto sum_run = loops.sum[static_cast<int>(behind)];
  for_runs(of, threads, true, [&](Index run, Index offset, Index place) {
    sum_run(task, terms, offset, place, of.pixels, partials_of(of, run, partials));
  });
  const auto numbers = static_cast<double>(of.numbers_of_channel());
  float* means = partials + of.runs() * 2 * of.block;
  float* slopes = means + of.places();
  for (Index c = 0; c < of.padded_channels(); ++c) {
    double sum = 0.0;
    double product = 0.0;
    for_partials(of, partials, c, [&](Index, double of_run, double product_of_run) {
      sum += of_run;
      product += product_of_run;
    });
    const double inverse = terms.inverse[c * of.lanes];
    for_places(of, c, [&](Index place) {
      means[place] = task.constant_statistics ? 0.0F : static_cast<float>(sum / numbers);
      slopes[place] = task.constant_statistics ? 0.0F : static_cast<float>(inverse * inverse * product / numbers);
    });
    if (c >= of.channels) continue;
    task.shift_gradient[c] = static_cast<float>(sum);
    task.scale_gradient[c] = static_cast<float>(inverse * product);
  }
  if (task.input_gradient == nullptr) return;
  const auto differentiate = loops.differentiate[static_cast<int>(behind)];
  for_runs(of, threads, false, [&](Index, Index offset, Index place) {
    differentiate(task, terms, means, slopes, offset, place, of.pixels);
  });
}

template void measure_blocked(const BlockedImages&, const float*, const float*, const float*, float, float*,
                              const NormTerms&, float*, float*, int);
template void measure_blocked(const BlockedImages&, const BFloat16*, const float*, const float*, float, float*,
                              const NormTerms&, float*, float*, int);
template void normalize_blocked(const BlockedImages&, const float*, const float*, const NormTerms&, bool, float*, int);
template void normalize_blocked(const BlockedImages&, const BFloat16*, const BFloat16*, const NormTerms&, bool,
                                BFloat16*, int);
template void blocked_gradients(const BlockedImages&, const BlockedGradients<float>&, const NormTerms&, float*, int);
template void blocked_gradients(const BlockedImages&, const BlockedGradients<BFloat16>&, const NormTerms&, float*, int);

}  // namespace arbalest::engine::cpu
