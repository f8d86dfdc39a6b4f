#include "engine/cpu/lanes/direct_convolution.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/cpu/lanes/correlation.h"
#include "engine/cpu/runtime/parallel.h"

namespace arbalest::engine::cpu {

namespace {

// Extents along one axis; `padding`: zeros before the input's pixels.
struct Axis {
  std::int64_t inputs, outputs, kernel, stride, padding;
};

// Taps by output position: tap t of output o reads pixel o * stride + t - padding, if it exists.
std::vector<Taps> taps_of_outputs(const Axis& axis) {
  std::vector<Taps> taps;
  for (std::int64_t output = 0; output < axis.outputs; ++output) {
    const std::int64_t pixel = output * axis.stride - axis.padding;
    const std::int64_t tap = std::max<std::int64_t>(0, -pixel);
    taps.push_back({pixel + tap, tap, std::max<std::int64_t>(0, std::min(axis.kernel, axis.inputs - pixel) - tap)});
  }
  return taps;
}

// Taps by input pixel: after t, o comes t + stride, o - 1.
std::vector<Taps> taps_of_inputs(const Axis& axis) {
  std::vector<Taps> taps;
  for (std::int64_t pixel = 0; pixel < axis.inputs; ++pixel) {
    const std::int64_t place = pixel + axis.padding;
    const std::int64_t source = std::min(place / axis.stride, axis.outputs - 1);
    const std::int64_t tap = place - source * axis.stride;
    const std::int64_t of_kernel = tap < axis.kernel ? (axis.kernel - 1 - tap) / axis.stride + 1 : 0;
    taps.push_back({source, tap, std::min(of_kernel, source + 1)});
  }
  return taps;
}

constexpr std::int64_t kLine = 16;  // units of a cache line, which holds the weights of a tap
// With fewer products, loading and storing the sums would take too large a part of a pass.
constexpr std::int64_t kTapsOfPass = 64;

// Calls body for equal parts of [0, count), each of at most `largest`.
template <typename Body>
void for_parts_of(std::int64_t count, std::int64_t largest, const Body& body) {
  const std::int64_t parts = (count + largest - 1) / largest;
  for (std::int64_t part = 0; part < parts; ++part) body(part * count / parts, (part + 1) * count / parts);
}

}  // namespace

LaneConvolution::LaneConvolution(const Shape& input, std::int64_t filters, const Window& window,
                                 const LaneKernels& kernels)
    : kernels_(kernels), blocks_(input[0] / kLanes), input_{input[1], input[2], input[3]}, window_(window) {
  const Shape output = window_output_shape(input, window_, filters);
  ARBALEST_CHECK(input[0] % kLanes == 0 && window.kernel.height * window.kernel.width <= kMaxTaps);
  ARBALEST_CHECK(window.dilation == Extent2d(1, 1));
  output_ = {filters, output[2], output[3]};
  const Extent2d after = padding_after(window);
  padded_ = {input[1], input[2] + window.padding.height + after.height, input[3] + window.padding.width + after.width};
  const Axis y{input_.height, output_.height, window.kernel.height, window.stride.height, window.padding.height};
  const Axis x{input_.width, output_.width, window.kernel.width, window.stride.width, window.padding.width};
  forward_y_ = taps_of_outputs(y);
  forward_x_ = taps_of_outputs(x);
  pairs_taps_ = kernels.elements == 2 && input_.channels == 1 && window == Window{window.kernel, window.stride};
  if (pairs_taps_) {
    for (Taps& taps : forward_x_) taps.count = (taps.count + 1) / 2;
  }
  backward_y_ = taps_of_inputs(y);
  backward_x_ = taps_of_inputs(x);
}

void LaneConvolution::run_rows(int threads, RowTask task, const Images& source, const Images& target,
                               const std::vector<Taps>& y) const {
  task.channels = (source.channels + kernels_.elements - 1) / kernels_.elements;
  task.source_plane = source.plane();
  task.source_row = source.row();
  task.kernel_height = window_.kernel.height;
  task.weight_step = target.channels;
  task.target_plane = target.plane();
  task.positions = target.width;
  // The two vectors that share a weight belong to two blocks, or are the halves of one.
  const bool pairs_blocks = kernels_.vector == kLanes;
  const std::int64_t step = pairs_blocks ? 2 : 1;
  const std::int64_t source_block = task.channels * source.plane();
  task.source_pair = pairs_blocks ? source_block : kernels_.vector;
  task.target_pair = pairs_blocks ? target.block() : kernels_.vector;
  const std::int64_t taps = task.kernel_height * task.kernel_width;
  const std::int64_t at_once = channels_at_once(task.channels, source.row());
  for_each_part(threads, (blocks_ + step - 1) / step * target.height, [&](std::int64_t part) {
    const std::int64_t block = part / target.height * step;
    const std::int64_t row = part % target.height;
    const std::int64_t vectors = pairs_blocks ? std::min(step, blocks_ - block) : 2;
    for_parts_of(task.channels, at_once, [&](std::int64_t first, std::int64_t last) {
      for_parts_of(target.channels, kernels_.max_channels, [&](std::int64_t begin, std::int64_t end) {
        RowTask some = task;
        some.source += block * source_block + first * source.plane();
        some.channels = last - first;
        some.weights += first * taps * task.weight_step + begin;
        if (some.bias != nullptr) some.bias += begin;
        some.target_offset = block * target.block() + begin * target.plane() + row * target.row();
        some.y = y[static_cast<std::size_t>(row)];
        some.adds = first > 0;
        some.relu = task.relu && last == task.channels;
        kernels_.row(end - begin, vectors, some);
      });
    });
  });
}

std::int64_t LaneConvolution::channels_at_once(std::int64_t channels, std::int64_t source_row) const {
  if (kernels_.cache_bytes == 0) return channels;
  const auto unit = static_cast<std::int64_t>(sizeof(LaneUnit));
  const std::int64_t taps = window_.kernel.height * window_.kernel.width;
  const std::int64_t bytes = (window_.kernel.height * source_row + taps * kLine) * unit;
  const std::int64_t worthwhile = (kTapsOfPass + taps - 1) / taps;
  return std::max(kernels_.cache_bytes / bytes, worthwhile);
}

LaneConvolution::Planes LaneConvolution::forward_planes() const {
  if (pairs_taps_) return {window_.kernel.height, window_.kernel.width};
  return {1, input_.channels};
}

void LaneConvolution::pack_input(int threads, const BFloat16* input, LaneUnit* packed) const {
  if (pairs_taps_) return pack_neighbors(threads, blocks_, input_.plane(), input, packed);
  pack_planes(threads, blocks_, input_.channels, input_.plane(), input, packed);
}

void LaneConvolution::pack_output_gradient(int threads, const BFloat16* gradient, LaneUnit* packed) const {
  pack_planes(threads, blocks_, output_.channels, output_.plane(), gradient, packed);
}

void LaneConvolution::forward(int threads, const LaneUnit* input, const LaneUnit* weights, const float* bias, bool relu,
                              void* output) const {
  RowTask task{};
  task.source = input;
  task.weights = weights;
  task.bias = bias;
  task.target = output;
  task.x = forward_x_.data();
  task.source_step_y = task.tap_step_y = task.tap_step_x = 1;
  task.source_step_x = pairs_taps_ ? 2 : 1;
  task.kernel_width = pairs_taps_ ? (window_.kernel.width + 1) / 2 : window_.kernel.width;
  task.relu = relu;
  run_rows(threads, task, input_, output_, forward_y_);
}

void LaneConvolution::input_gradient(int threads, const LaneUnit* output_gradient, const LaneUnit* weights,
                                     void* gradient) const {
  RowTask task{};
  task.source = output_gradient;
  task.weights = weights;
  task.target = gradient;
  task.x = backward_x_.data();
  task.source_step_y = task.source_step_x = -1;
  task.kernel_width = window_.kernel.width;
  task.tap_step_y = window_.stride.height;
  task.tap_step_x = window_.stride.width;
  run_rows(threads, task, output_, input_, backward_y_);
}

void LaneConvolution::pad(int threads, const LaneUnit* input, LaneUnit* padded) const {
  const std::int64_t row = input_.row() / kernels_.elements;
  const std::int64_t padded_row = padded_.row() / kernels_.elements;
  const std::int64_t left = window_.padding.width * kLanes / kernels_.elements;
  for_each_part(threads, blocks_ * input_.channels, [&](std::int64_t plane) {
    const LaneUnit* from = input + plane * input_.height * row;
    LaneUnit* to = padded + plane * padded_.height * padded_row;
    to = std::fill_n(to, window_.padding.height * padded_row, LaneUnit{});
    for (std::int64_t y = 0; y < input_.height; ++y, from += row) {
      to = std::fill_n(to, left, LaneUnit{});
      to = std::copy_n(from, row, to);
      to = std::fill_n(to, padded_row - row - left, LaneUnit{});
    }
    std::fill_n(to, (padded_.height - input_.height - window_.padding.height) * padded_row, LaneUnit{});
  });
}

void LaneConvolution::weights_gradient(int threads, const LaneUnit* padded, const LaneUnit* output_gradient,
                                       float* weights_gradient, float* bias_gradient) const {
  const std::int64_t elements = kernels_.elements;
  CorrelationTask task{};
  task.blocks = blocks_;
  task.input = padded;
  task.channels = input_.channels;
  task.input_block = padded_.block() / elements;
  task.input_plane = padded_.plane() / elements;
  task.input_row = padded_.row() / elements;
  task.gradient = output_gradient;
  task.gradient_block = output_.block() / elements;
  task.gradient_plane = output_.plane() / elements;
  task.height = output_.height;
  task.width = output_.width;
  task.stride_y = window_.stride.height;
  task.stride_x = window_.stride.width;
  task.kernel_height = window_.kernel.height;
  task.kernel_width = window_.kernel.width;
  task.weights_gradient = weights_gradient;
  task.weight_step = output_.channels;
  task.bias_gradient = bias_gradient;
  const Correlation correlation(kernels_, task, output_.channels);
  for_each_part(threads, correlation.parts(), [&](std::int64_t part) { correlation.run(part); });
}

}  // namespace arbalest::engine::cpu
