#include "engine/cpu/winograd/convolution.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/cpu/lanes/correlation.h"
#include "engine/cpu/runtime/parallel.h"
#include "engine/cpu/winograd/kernels.h"

namespace arbalest::engine::cpu {

namespace {

constexpr std::int64_t kPixelOfPairs = kLanes / 2;  // units of a pixel in pairs of examples

// Adds w' = G' m for the weights of a kernel row. The components m are `step` apart; `count` neighboring weights are
// added.
void add_row(std::int64_t count, const float* m, std::int64_t step, float* gradient) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float sum = 0.5F * (m[step + i] + m[2 * step + i]);
    gradient[i] += m[i] + sum;
    gradient[count + i] += 0.5F * (m[step + i] - m[2 * step + i]);
    gradient[2 * count + i] += sum + m[3 * step + i];
  }
}

// Transformed data that is read several times should stay in or near the second-level cache. This is 1.2 times as fast
// as 64 examples at once (16 channels of 32 x 32 pixels, both cores busy, Zen 4).
constexpr std::int64_t kUnitsAtOnce = 5 * 128 * 1024;
// With fewer pixels per filter, loading and storing the sums would take too large a part of the time.
constexpr std::int64_t kVectorsAtOnce = 64;

}  // namespace

bool has_winograd(const Shape& input, std::int64_t filters, const Window& window) {
  return bfloat16_lane_kernels() != nullptr && window == Window{{kRows, kRows}, {1, 1}, {1, 1}} && filters > 1 &&
         input[0] % kLanes == 0 && input[2] % kTile == 0 && input[3] % kTile == 0;
}

WinogradConvolution::WinogradConvolution(const Shape& input, std::int64_t filters)
    : blocks_(input[0] / kLanes), channels_(input[1]), height_(input[2]), width_(input[3]), filters_(filters) {
  ARBALEST_CHECK(has_winograd(input, filters, {{kRows, kRows}, {1, 1}, {1, 1}}));
}

std::int64_t WinogradConvolution::weight_units() const { return pairs() * kRows * kComponents * filters_; }

void WinogradConvolution::prepare(const BFloat16* weights, bool reversed, LaneUnit* prepared) const {
  transform_weights(channels_, filters_, reversed, weights, prepared);
}

std::int64_t WinogradConvolution::scratch_units() const {
  return pairs() * height_ * (width_ / kTile) * kComponents * kLanes;
}

void WinogradConvolution::run(int threads, const BFloat16* input, const LaneUnit* weights, const float* bias, bool relu,
                              LaneUnit* scratch, BFloat16* output) const {
  const std::int64_t plane = height_ * width_ * kLanes;
  for (std::int64_t block = 0; block < blocks_; ++block) {  // one block at a time, so that transformed data stays in
                                                            // the cache
    const BFloat16* planes = input + block * channels_ * plane;
    for_each_part(threads, pairs(), [&](std::int64_t pair) {
      const BFloat16* first = planes + 2 * pair * plane;
      transform_channels(height_, width_, first, 2 * pair + 1 < channels_ ? first + plane : nullptr,
                         scratch + pair * (scratch_units() / pairs()));
    });
    const WinogradRows all{scratch,  pairs(), height_, width_, weights,
                           filters_, bias,    relu,    0,      output + block * filters_ * plane};
    for_each_part(threads, height_ / kTile, [&](std::int64_t part) {
      WinogradRows rows = all;
      rows.row = part * kTile;
      convolve_rows(rows);
    });
  }
}

WinogradWeightsGradient::WinogradWeightsGradient(const Shape& input, std::int64_t filters)
    : blocks_(input[0] / kLanes), channels_(input[1]), height_(input[2]), width_(input[3]), filters_(filters) {
  ARBALEST_CHECK(has_winograd(input, filters, {{kRows, kRows}, {1, 1}, {1, 1}}));
  const std::int64_t units_of_block =
      width_ / kTile * kComponents * (channels_ * (height_ + 2) + filters_ * height_) * kPixelOfPairs;
  const std::int64_t vectors_of_block = width_ / kTile * height_ / 2;
  blocks_at_once_ = std::max(kUnitsAtOnce / units_of_block, kVectorsAtOnce / vectors_of_block);
  blocks_at_once_ = std::clamp<std::int64_t>(blocks_at_once_, 1, blocks_);
  of_input_ = components(channels_, height_ + 2);
  of_gradient_ = components(filters_, height_);
}

WinogradWeightsGradient::Components WinogradWeightsGradient::components(std::int64_t planes, std::int64_t rows) const {
  // Columns are often a power of 2 apart. This extra distance moves the columns of the next component to other sets of
  // the first-level cache.
  constexpr std::int64_t kApart = 64;
  const std::int64_t plane = width_ / kTile * rows * kPixelOfPairs;
  return {plane, blocks_at_once_ * planes * plane + kApart};
}

std::int64_t WinogradWeightsGradient::scratch_units() const {
  const std::int64_t sums = (channels_ * kRows + 1) * filters_;  // per component, followed by the bias
  return kComponents * (of_input_.component + of_gradient_.component + sums);
}

void WinogradWeightsGradient::run(int threads, const BFloat16* input, const BFloat16* output_gradient,
                                  LaneUnit* scratch, float* weights_gradient, float* bias_gradient) const {
  std::fill_n(weights_gradient, channels_ * kRows * kRows * filters_, 0.0F);
  if (bias_gradient != nullptr) std::fill_n(bias_gradient, filters_, 0.0F);
  const std::int64_t plane = height_ * width_ * kLanes;
  for (std::int64_t block = 0; block < blocks_; block += blocks_at_once_) {
    add(threads, std::min(blocks_at_once_, blocks_ - block), input + block * channels_ * plane,
        output_gradient + block * filters_ * plane, scratch, weights_gradient, bias_gradient);
  }
}

void WinogradWeightsGradient::add(int threads, std::int64_t blocks, const BFloat16* input,
                                  const BFloat16* output_gradient, LaneUnit* scratch, float* weights_gradient,
                                  float* bias_gradient) const {
  constexpr std::int64_t kHalves = 2;  // halves of a unit
  const std::int64_t plane = height_ * width_ * kLanes;
  LaneUnit* const inputs = scratch;
  LaneUnit* const gradients = inputs + kComponents * of_input_.component;
  auto* const sums = reinterpret_cast<float*>(gradients + kComponents * of_gradient_.component);
  for_each_part(threads, blocks * channels_, [&](std::int64_t i) {
    transform_input(height_, width_, input + i * plane, kHalves * of_input_.component,
                    reinterpret_cast<BFloat16*>(inputs + i * of_input_.plane));
  });
  for_each_part(threads, blocks * filters_, [&](std::int64_t i) {
    transform_gradient(height_, width_, output_gradient + i * plane, kHalves * of_gradient_.component,
                       reinterpret_cast<BFloat16*>(gradients + i * of_gradient_.plane));
  });

  const std::int64_t bias = channels_ * kRows * filters_;
  const std::int64_t component = bias + filters_;
  const auto of_component = [&](std::int64_t k) {
    CorrelationTask task = correlation(blocks);
    task.input = inputs + k * of_input_.component;
    task.gradient = gradients + k * of_gradient_.component;
    task.weights_gradient = sums + k * component;
    // The first and the last component are the gradients themselves, of the left and of the right pixels.
    const bool sums_bias = bias_gradient != nullptr && (k == 0 || k == kComponents - 1);
    task.bias_gradient = sums_bias ? task.weights_gradient + bias : nullptr;
    return Correlation(*bfloat16_lane_kernels(), task, filters_);
  };
  const std::int64_t parts = of_component(0).parts();
  for_each_part(threads, kComponents * parts, [&](std::int64_t i) { of_component(i / parts).run(i % parts); });

  for_each_part(threads, channels_ * kRows, [&](std::int64_t row) {
    add_row(filters_, sums + row * filters_, component, weights_gradient + row * kRows * filters_);
  });
  if (bias_gradient == nullptr) return;
  const float* left = sums + bias;
  const float* right = left + (kComponents - 1) * component;
  for (std::int64_t f = 0; f < filters_; ++f) bias_gradient[f] += left[f] + right[f];
}

// Columns of tiles take the place of rows, so that the kernel's rows are neighboring taps.
CorrelationTask WinogradWeightsGradient::correlation(std::int64_t blocks) const {
  CorrelationTask task{};
  task.blocks = blocks;
  task.channels = channels_;
  task.input_block = channels_ * of_input_.plane;
  task.input_plane = of_input_.plane;
  task.input_row = (height_ + 2) * kPixelOfPairs;
  task.gradient_block = filters_ * of_gradient_.plane;
  task.gradient_plane = of_gradient_.plane;
  task.height = width_ / kTile;
  task.width = height_;
  task.stride_y = task.stride_x = 1;
  task.kernel_height = 1;
  task.kernel_width = kRows;
  task.weight_step = filters_;
  return task;
}

}  // namespace arbalest::engine::cpu
