#include <limits>

#include "engine/base/alignment.h"
#include "engine/base/error.h"
#include "engine/cuda/kernels/block.h"
#include "engine/cuda/kernels/layout.h"
#include "engine/cuda/operators/kernel_operator.h"
#include "engine/cuda/operators/operators.h"
#include "engine/elementwise/bfloat16.h"

namespace arbalest::engine::cuda {

namespace {

using elementwise::load;
using elementwise::store;

// Coordinates are 32-bit: 64-bit divisions would dominate the kernel's time.
struct Axis {
  std::int32_t input;   // extent
  std::int32_t output;  // extent
  std::int32_t kernel;
  std::int32_t stride;
  std::int32_t padding;
};

struct Geometry {
  Axis rows;
  Axis columns;
  std::int32_t channels;
  bool channels_last;   // for input and output
  bool counts_padding;  // whether averages count padding
};

struct Extents {
  std::int32_t rows;
  std::int32_t columns;
};

// A channel of an image in memory: the pixel at (row, column) is at first + (row * columns + column) * step.
struct Plane {
  std::int64_t first;
  std::int32_t step;
};

// The i-th element of a tensor: its position in its channel, and the same channel in the other tensor.
struct Element {
  std::int32_t row;
  std::int32_t column;
  Plane other;
};

__device__ Element locate(std::int32_t i, const Extents& own, const Extents& other, const Geometry& geometry) {
  const std::int32_t pixels = own.rows * own.columns;
  const std::int64_t other_pixels = std::int64_t{other.rows} * other.columns;
  if (geometry.channels_last) {
    const std::int32_t channel = i % geometry.channels;
    const std::int32_t rest = i / geometry.channels;
    const std::int32_t pixel = rest % pixels;
    return {pixel / own.columns,
            pixel % own.columns,
            {rest / pixels * other_pixels * geometry.channels + channel, geometry.channels}};
  }
  const std::int32_t pixel = i % pixels;
  return {pixel / own.columns, pixel % own.columns, {i / pixels * other_pixels, 1}};
}

struct Interval {
  std::int32_t begin;
  std::int32_t end;
};

// Coordinates of the input under the window at `position`; never empty.
__device__ Interval window_at(const Axis& axis, std::int32_t position) {
  const std::int32_t begin = position * axis.stride - axis.padding;
  return {std::max(begin, 0), std::min(begin + axis.kernel, axis.input)};
}

// Positions whose windows cover coordinate `place` of the input.
__device__ Interval windows_over(const Axis& axis, std::int32_t place) {
  const std::int32_t last = place + axis.padding;
  return {last < axis.kernel ? 0 : (last - axis.kernel) / axis.stride + 1,
          std::min(last / axis.stride + 1, axis.output)};
}

__device__ std::int32_t length(const Interval& interval) { return interval.end - interval.begin; }

// Number of elements in an average.
__device__ float divisor(const Geometry& geometry, const Interval& rows, const Interval& columns) {
  const std::int32_t count =
      geometry.counts_padding ? geometry.rows.kernel * geometry.columns.kernel : length(rows) * length(columns);
  return static_cast<float>(count);
}

__device__ Extents input_of(const Geometry& geometry) { return {geometry.rows.input, geometry.columns.input}; }
__device__ Extents output_of(const Geometry& geometry) { return {geometry.rows.output, geometry.columns.output}; }

// Below, `T` is the type of all tensors; sums are float32.

// The first maximum in the window's order wins. A NaN always wins, so that it is found.
//   winners: pixel of each maximum, for the backward pass; null at inference
template <typename T>
__device__ void max_pool(const T* input, T* output, std::int32_t* winners, std::int64_t elements, Geometry geometry) {
  const Extents extents = input_of(geometry);
  for (std::int64_t i = first_element(); i < elements; i += element_step()) {
    const Element at = locate(static_cast<std::int32_t>(i), output_of(geometry), extents, geometry);
    const Interval rows = window_at(geometry.rows, at.row);
    const Interval columns = window_at(geometry.columns, at.column);
    std::int32_t winner = rows.begin * extents.columns + columns.begin;
    float largest = load(input[at.other.first + std::int64_t{winner} * at.other.step]);
    for (std::int32_t row = rows.begin; row < rows.end; ++row) {
      for (std::int32_t column = columns.begin; column < columns.end; ++column) {
        const std::int32_t pixel = row * extents.columns + column;
        const float value = load(input[at.other.first + std::int64_t{pixel} * at.other.step]);
        if (value > largest || value != value) {
          largest = value;
          winner = pixel;
        }
      }
    }
    store(largest, output[i]);
    if (winners != nullptr) winners[i] = winner;
  }
}

// Each element of the input adds up the windows that cover it, in a fixed order.
template <typename T>
__device__ void max_pool_backward(const T* output_gradient, const std::int32_t* winners, T* input_gradient,
                                  std::int64_t elements, Geometry geometry) {
  const Extents extents = output_of(geometry);
  for (std::int64_t i = first_element(); i < elements; i += element_step()) {
    const Element at = locate(static_cast<std::int32_t>(i), input_of(geometry), extents, geometry);
    const std::int32_t own = at.row * geometry.columns.input + at.column;
    const Interval rows = windows_over(geometry.rows, at.row);
    const Interval columns = windows_over(geometry.columns, at.column);
    float sum = 0.0F;
    for (std::int32_t row = rows.begin; row < rows.end; ++row) {
      for (std::int32_t column = columns.begin; column < columns.end; ++column) {
        const std::int64_t window = at.other.first + std::int64_t{row * extents.columns + column} * at.other.step;
        if (winners[window] == own) sum += load(output_gradient[window]);
      }
    }
    store(sum, input_gradient[i]);
  }
}

template <typename T>
__device__ void average_pool(const T* input, T* output, std::int64_t elements, Geometry geometry) {
  const Extents extents = input_of(geometry);
  for (std::int64_t i = first_element(); i < elements; i += element_step()) {
    const Element at = locate(static_cast<std::int32_t>(i), output_of(geometry), extents, geometry);
    const Interval rows = window_at(geometry.rows, at.row);
    const Interval columns = window_at(geometry.columns, at.column);
    float sum = 0.0F;
    for (std::int32_t row = rows.begin; row < rows.end; ++row) {
      for (std::int32_t column = columns.begin; column < columns.end; ++column) {
        sum += load(input[at.other.first + std::int64_t{row * extents.columns + column} * at.other.step]);
      }
    }
    store(sum / divisor(geometry, rows, columns), output[i]);
  }
}

template <typename T>
__device__ void average_pool_backward(const T* output_gradient, T* input_gradient, std::int64_t elements,
                                      Geometry geometry) {
  const Extents extents = output_of(geometry);
  for (std::int64_t i = first_element(); i < elements; i += element_step()) {
    const Element at = locate(static_cast<std::int32_t>(i), input_of(geometry), extents, geometry);
    const Interval rows = windows_over(geometry.rows, at.row);
    const Interval columns = windows_over(geometry.columns, at.column);
    float sum = 0.0F;
    for (std::int32_t row = rows.begin; row < rows.end; ++row) {
      const Interval height = window_at(geometry.rows, row);
      for (std::int32_t column = columns.begin; column < columns.end; ++column) {
        const Interval width = window_at(geometry.columns, column);
        const std::int64_t window = at.other.first + std::int64_t{row * extents.columns + column} * at.other.step;
        sum += load(output_gradient[window]) / divisor(geometry, height, width);
      }
    }
    store(sum, input_gradient[i]);
  }
}

std::int32_t narrow(std::int64_t value) {
  ARBALEST_CHECK(value >= 0 && value <= std::numeric_limits<std::int32_t>::max());
  return static_cast<std::int32_t>(value);
}

Axis make_axis(std::int64_t input, std::int64_t output, std::int64_t kernel, std::int64_t stride,
               std::int64_t padding) {
  ARBALEST_CHECK(padding < kernel && (output - 1) * stride - padding < input);  // no window is empty
  narrow(input + padding + kernel);                                             // largest sum of coordinates
  // If there is only one window, the stride may be larger than any coordinate.
  const std::int64_t step = std::min(stride, input + padding + 1);
  return {narrow(input), narrow(output), narrow(kernel), narrow(step), narrow(padding)};
}

struct Passes {
  KernelOperator::Forward forward;
  KernelOperator::Backward backward;
};

template <typename T>
Passes make_max(const Geometry& geometry, std::int64_t inputs, std::int64_t outputs, bool training) {
  const auto forward = [=](const ForwardAddresses& addresses, const StreamContext& context) {
    launch<max_pool<T>>(blocks_for(outputs), context.stream, static_cast<const T*>(addresses.input),
                        static_cast<T*>(addresses.output),
                        training ? static_cast<std::int32_t*>(addresses.saved) : nullptr, outputs, geometry);
  };
  const auto backward = [=](const BackwardAddresses& addresses, const StreamContext& context) {
    launch<max_pool_backward<T>>(blocks_for(inputs), context.stream, static_cast<const T*>(addresses.output_gradient),
                                 static_cast<const std::int32_t*>(addresses.saved),
                                 static_cast<T*>(addresses.input_gradient), inputs, geometry);
  };
  return {forward, backward};
}

template <typename T>
Passes make_average(const Geometry& geometry, std::int64_t inputs, std::int64_t outputs) {
  const auto forward = [=](const ForwardAddresses& addresses, const StreamContext& context) {
    launch<average_pool<T>>(blocks_for(outputs), context.stream, static_cast<const T*>(addresses.input),
                            static_cast<T*>(addresses.output), outputs, geometry);
  };
  const auto backward = [=](const BackwardAddresses& addresses, const StreamContext& context) {
    launch<average_pool_backward<T>>(blocks_for(inputs), context.stream,
                                     static_cast<const T*>(addresses.output_gradient),
                                     static_cast<T*>(addresses.input_gradient), inputs, geometry);
  };
  return {forward, backward};
}

template <typename T>
Passes make_passes(PoolKind kind, const Geometry& geometry, std::int64_t inputs, std::int64_t outputs, bool training) {
  return kind == PoolKind::kMax ? make_max<T>(geometry, inputs, outputs, training)
                                : make_average<T>(geometry, inputs, outputs);
}

}  // namespace

std::unique_ptr<Operator> make_operator(const Pool2dSpec& spec, const PrepareOptions& options) {
  const Shape& input = spec.input.shape();
  const Window& window = spec.window;
  const Shape output = window_output_shape(input, window, input[1]);
  const Order order = order_of(spec.input);
  const Geometry geometry{
      make_axis(input[2], output[2], window.kernel.height, window.stride.height, window.padding.height),
      make_axis(input[3], output[3], window.kernel.width, window.stride.width, window.padding.width), narrow(input[1]),
      order == Order::kChannelsLast, spec.count_padding};
  if (std::max(input.elements(), output.elements()) > std::numeric_limits<std::int32_t>::max()) {
    fail(ErrorKind::kDevice, "pooling {} to {}: a GPU pools fewer than 2^31 elements at once; use smaller batches",
         to_string(input), to_string(output));
  }

  const bool training = options.mode == OperatorMode::kTraining;
  const bool is_max = spec.kind == PoolKind::kMax;
  OperatorTraits traits;
  traits.output = make_layout(output, spec.input.dtype(), order);
  if (training && is_max) {
    traits.saved_bytes = aligned(static_cast<std::size_t>(output.elements()) * sizeof(std::int32_t));
  }
  Passes passes = is_bfloat16(spec.input)
                      ? make_passes<BFloat16>(spec.kind, geometry, input.elements(), output.elements(), training)
                      : make_passes<float>(spec.kind, geometry, input.elements(), output.elements(), training);
  if (!training || !options.input_gradient) passes.backward = nullptr;
  return std::make_unique<KernelOperator>(std::move(traits), std::move(passes.forward), std::move(passes.backward));
}

}  // namespace arbalest::engine::cuda
