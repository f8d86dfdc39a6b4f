#include "engine/base/bfloat16.h"
#include "engine/base/error.h"
#include "engine/cuda/kernels/block.h"
#include "engine/cuda/kernels/layout.h"
#include "engine/cuda/operators/kernel_operator.h"
#include "engine/cuda/operators/operators.h"

namespace arbalest::engine::cuda {

namespace {

struct Extents {
  std::int64_t channels;
  std::int64_t rows;
  std::int64_t columns;
};

struct Geometry {
  Extents input;
  Extents output;
  std::int64_t before;  // channels of zeros before the input's
  std::int64_t stride;
  std::int64_t channels_last;  // 1 if both have channels last. 64 bits, so that the struct has no padding.
};

struct Place {
  std::int64_t example, channel, row, column;
};

__device__ Place locate(std::int64_t i, const Extents& of, std::int64_t channels_last) {
  if (channels_last != 0) {
    const std::int64_t pixel = i / of.channels;
    const std::int64_t line = pixel / of.columns;
    return {line / of.rows, i % of.channels, line % of.rows, pixel % of.columns};
  }
  const std::int64_t line = i / of.columns;
  const std::int64_t plane = line / of.rows;
  return {plane / of.channels, plane % of.channels, line % of.rows, i % of.columns};
}

__device__ std::int64_t index(const Place& at, const Extents& of, std::int64_t channels_last) {
  if (channels_last != 0) return ((at.example * of.rows + at.row) * of.columns + at.column) * of.channels + at.channel;
  return ((at.example * of.channels + at.channel) * of.rows + at.row) * of.columns + at.column;
}

// Below, `T` is the type of the elements.
template <typename T>
__device__ void shortcut(const T* input, T* output, std::int64_t elements, Geometry of) {
  for (std::int64_t i = first_element(); i < elements; i += element_step()) {
    Place at = locate(i, of.output, of.channels_last);
    at = {at.example, at.channel - of.before, at.row * of.stride, at.column * of.stride};
    const bool is_shared = at.channel >= 0 && at.channel < of.input.channels;
    output[i] = is_shared ? input[index(at, of.input, of.channels_last)] : T{};
  }
}

template <typename T>
__device__ void shortcut_backward(const T* output_gradient, T* input_gradient, std::int64_t elements, Geometry of) {
  for (std::int64_t i = first_element(); i < elements; i += element_step()) {
    const Place at = locate(i, of.input, of.channels_last);
    const bool is_shared = at.row % of.stride == 0 && at.column % of.stride == 0;
    const Place there{at.example, at.channel + of.before, at.row / of.stride, at.column / of.stride};
    input_gradient[i] = is_shared ? output_gradient[index(there, of.output, of.channels_last)] : T{};
  }
}

template <typename T>
std::unique_ptr<Operator> make_shortcut(const PaddedShortcutSpec& spec, const Shape& output,
                                        const PrepareOptions& options) {
  const Shape& input = spec.input.shape();
  const Order order = order_of(spec.input);
  OperatorTraits traits;
  traits.output = make_layout(output, spec.input.dtype(), order);
  const Geometry geometry{{input[1], input[2], input[3]},
                          {output[1], output[2], output[3]},
                          (output[1] - input[1]) / 2,
                          spec.stride,
                          order == Order::kChannelsLast ? 1 : 0};
  const auto forward = [geometry, elements = output.elements()](const ForwardAddresses& addresses,
                                                                const StreamContext& context) {
    launch<shortcut<T>>(blocks_for(elements), context.stream, static_cast<const T*>(addresses.input),
                        static_cast<T*>(addresses.output), elements, geometry);
  };
  KernelOperator::Backward backward;
  if (options.wants_gradient(0)) {
    backward = [geometry, elements = input.elements()](const BackwardAddresses& addresses,
                                                       const StreamContext& context) {
      launch<shortcut_backward<T>>(blocks_for(elements), context.stream,
                                   static_cast<const T*>(addresses.output_gradient),
                                   static_cast<T*>(addresses.input_gradient), elements, geometry);
    };
  }
  return std::make_unique<KernelOperator>(std::move(traits), forward, std::move(backward));
}

}  // namespace

std::unique_ptr<Operator> make_operator(const PaddedShortcutSpec& spec, const PrepareOptions& options) {
  const Shape& input = spec.input.shape();
  ARBALEST_CHECK(spec.channels >= input[1] && spec.stride > 0);
  const Shape output = padded_shortcut_shape(input, spec.channels, spec.stride);
  return is_bfloat16(spec.input) ? make_shortcut<BFloat16>(spec, output, options)
                                 : make_shortcut<float>(spec, output, options);
}

}  // namespace arbalest::engine::cuda
