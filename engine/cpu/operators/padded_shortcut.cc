#include <algorithm>

#include "engine/base/error.h"
#include "engine/cpu/lanes/kernels.h"
#include "engine/cpu/lanes/lanes.h"
#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/onednn/program.h"
#include "engine/cpu/operators/operators.h"
#include "engine/cpu/runtime/elements.h"
#include "engine/cpu/runtime/parallel.h"

namespace arbalest::engine::cpu {

namespace {

// Images one after the other, or with interleaved examples. In the second case the strides are those of kLanes examples
// together.
struct Images {
  ImageStrides strides;
  Shape shape;
  std::int64_t lanes = 1;
};

Images images_in(const dnnl::memory::desc& lies, const Shape& shape) {
  if (!lies_in_lanes(lies)) return {*image_strides(lies), shape};
  const std::int64_t row = shape[3] * kLanes;
  const std::int64_t plane = shape[2] * row;
  return {{1, shape[1] * plane, plane, 0, row, kLanes}, shape, kLanes};
}

bool has_whole_examples(const ImageStrides& strides) {
  return strides.example >= std::max({strides.channel_block, strides.row, strides.column});
}

// The layout in which the input is read: its own layout if the output can also have it, else canonical order.
struct Layouts {
  dnnl::memory::desc input;
  dnnl::memory::desc output;
};

Layouts choose_layouts(const PaddedShortcutSpec& spec, const Shape& output) {
  const dnnl::memory::desc input = descriptor(spec.input);
  if (lies_in_lanes(input)) return {input, lane_descriptor(output, spec.input.dtype())};
  const auto strides = image_strides(input);
  const auto alike = with_extents(input, dims(output));
  if (strides.has_value() && has_whole_examples(*strides) && alike.has_value()) return {input, *alike};
  return {plain_descriptor(spec.input.shape(), spec.input.dtype()), plain_descriptor(output, spec.input.dtype())};
}

std::int64_t channel_offset(const ImageStrides& strides, std::int64_t channel) {
  return channel / strides.block * strides.channel_block + channel % strides.block * strides.channel;
}

// Positions in an example of the channels that input and output share.
struct SharedChannels {
  std::vector<std::int64_t> in_input;
  std::vector<std::int64_t> in_output;
};

SharedChannels shared_channels(const Images& input, const Images& output) {
  SharedChannels shared;
  const std::int64_t before = (output.shape[1] - input.shape[1]) / 2;
  for (std::int64_t c = 0; c < input.shape[1]; ++c) {
    shared.in_input.push_back(channel_offset(input.strides, c));
    shared.in_output.push_back(channel_offset(output.strides, before + c));
  }
  return shared;
}

// Copies the shared elements to `to`, example by example, and zeroes the rest. `to_channels`, `from_channels`:
// positions in an example.
struct Copy {
  Images to;
  Images from;
  std::vector<std::int64_t> to_channels;
  std::vector<std::int64_t> from_channels;
  std::int64_t to_step = 1;  // pixels, in both directions, between shared pixels
  std::int64_t from_step = 1;
  std::int64_t rows = 0;  // rows of shared pixels
  std::int64_t columns = 0;

  void run(DType dtype, void* target, const void* source, int threads) const {
    with_elements(dtype, [&]<typename T>(ElementKind<T>) {
      auto* written = static_cast<T*>(target);
      const auto* read = static_cast<const T*>(source);
      to.lanes == 1 ? run<1>(written, read, threads) : run<kLanes>(written, read, threads);
    });
  }

  template <std::int64_t lanes, typename T>
  void run(T* target, const T* source, int threads) const {
    for_each_part(threads, to.shape[0] / lanes, [&](std::int64_t n) {
      T* written = target + n * to.strides.example;
      const T* read = source + n * from.strides.example;
      std::fill_n(written, to.strides.example, T{});
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t column = 0; column < columns; ++column) {
          T* pixel = written + row * to_step * to.strides.row + column * to_step * to.strides.column;
          const T* other = read + row * from_step * from.strides.row + column * from_step * from.strides.column;
          for (std::size_t c = 0; c < to_channels.size(); ++c) {
            std::copy_n(other + from_channels[c], lanes, pixel + to_channels[c]);
          }
        }
      }
    });
  }
};

}  // namespace

std::unique_ptr<Operator> make_operator(const PaddedShortcutSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine) {
  ARBALEST_CHECK(spec.channels >= spec.input.shape()[1] && spec.stride > 0);
  const Shape shape = padded_shortcut_shape(spec.input.shape(), spec.channels, spec.stride);
  const Layouts layouts = choose_layouts(spec, shape);
  const Images input = images_in(layouts.input, spec.input.shape());
  const Images output = images_in(layouts.output, shape);
  const SharedChannels shared = shared_channels(input, output);
  const Operand own{Role::kInput, descriptor(spec.input)};
  const DType dtype = spec.input.dtype();

  OperatorTraits traits;
  traits.output = make_layout(layouts.output);
  Program forward(engine);
  const Operand read = forward.read_as(own, layouts.input);
  const Copy down{output, input, shared.in_output, shared.in_input, 1, spec.stride, shape[2], shape[3]};
  forward.add([=](const TaskContext& context, const Addresses& addresses) {
    down.run(dtype, addresses[Role::kOutput], read.at<const void>(addresses), context.threads);
  });
  std::optional<Program> backward;
  if (options.mode == OperatorMode::kTraining) backward.emplace(engine);
  if (options.wants_gradient(0)) {
    const Operand target{Role::kInputGradient, descriptor(spec.input)};
    const Operand gradient = backward->write_as(target, layouts.input);
    const Copy up{input, output, shared.in_input, shared.in_output, spec.stride, 1, shape[2], shape[3]};
    backward->add([=](const TaskContext& context, const Addresses& addresses) {
      up.run(dtype, gradient.at<void>(addresses), addresses[Role::kOutputGradient], context.threads);
    });
    backward->deliver(gradient, target);
  }
  return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::move(backward));
}

}  // namespace arbalest::engine::cpu
