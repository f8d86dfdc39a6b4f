#include "engine/elementwise/dropout.h"

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

// Elements in canonical order, four at a time. `target` may be `source`.
template <typename T>
__device__ void mask_quads(const T* source, T* target, std::int64_t elements, const StepParameters* step,
                           elementwise::DropoutConstants constants) {
  const elementwise::DropoutMask mask{step->seed, step->task, constants};
  for (std::int64_t quad = first_element(); 4 * quad < elements; quad += element_step()) {
    const elementwise::PhiloxCounter random = elementwise::dropout_words(mask, static_cast<std::uint32_t>(quad));
    for (std::int64_t i = 0; i < 4; ++i) {
      const std::int64_t e = 4 * quad + i;
      if (e < elements) store(elementwise::dropout(load(source[e]), random.words[i], mask), target[e]);
    }
  }
}

// Elements with channels last, one at a time. Words are computed four times, but memory is accessed in order.
template <typename T>
__device__ void mask_channels_last(const T* source, T* target, std::int64_t elements, std::int64_t channels,
                                   std::int64_t pixels, const StepParameters* step,
                                   elementwise::DropoutConstants constants) {
  const elementwise::DropoutMask mask{step->seed, step->task, constants};
  for (std::int64_t i = first_element(); i < elements; i += element_step()) {
    const std::int64_t pixel = i / channels;  // index in the batch
    const std::int64_t image = pixel / pixels;
    const std::int64_t e = (image * channels + i % channels) * pixels + pixel % pixels;
    const elementwise::PhiloxCounter random = elementwise::dropout_words(mask, static_cast<std::uint32_t>(e / 4));
    const std::uint32_t low = e % 2 == 0 ? random.words[0] : random.words[1];
    const std::uint32_t high = e % 2 == 0 ? random.words[2] : random.words[3];
    store(elementwise::dropout(load(source[i]), e % 4 < 2 ? low : high, mask), target[i]);
  }
}

// A block of columns, by the numbers that its elements have in the whole tensors (ops/dropout.h). [rows, width]
__device__ void mask_columns(const float* source, float* target, std::int64_t rows, std::int64_t width,
                             ColumnBlock block, const StepParameters* step, elementwise::DropoutConstants constants) {
  const std::int64_t examples = rows / block.ranks;
  for (std::int64_t i = first_element(); i < rows * width; i += element_step()) {
    const std::int64_t row = i / width;
    const std::int64_t owner = row / examples;  // the rank whose mini-batch the row belongs to
    const elementwise::DropoutMask mask{step->seed, step->task + static_cast<std::uint64_t>(owner - block.rank),
                                        constants};
    const std::int64_t e = ((row - owner * examples) * block.ranks + block.rank) * width + i % width;
    const elementwise::PhiloxCounter random = elementwise::dropout_words(mask, static_cast<std::uint32_t>(e / 4));
    const std::uint32_t low = e % 2 == 0 ? random.words[0] : random.words[1];
    const std::uint32_t high = e % 2 == 0 ? random.words[2] : random.words[3];
    target[i] = elementwise::dropout(source[i], e % 4 < 2 ? low : high, mask);
  }
}

class Masking {
 public:
  explicit Masking(const DropoutSpec& spec)
      : shape_(spec.input.shape()),
        is_bfloat16_(is_bfloat16(spec.input)),
        channels_last_(order_of(spec.input) == Order::kChannelsLast),
        block_(spec.block),
        constants_(elementwise::dropout_constants(spec.layer, spec.ratio)) {}

  // Enqueues target = source under the mask of the running step.
  void enqueue(const void* source, void* target, const StepParameters* step, const TeamStream& stream) const {
    if (block_) {
      launch<mask_columns>(blocks_for(shape_.elements()), stream, static_cast<const float*>(source),
                           static_cast<float*>(target), shape_[0], shape_[1], *block_, step, constants_);
    } else if (is_bfloat16_) {
      enqueue_of(static_cast<const BFloat16*>(source), static_cast<BFloat16*>(target), step, stream);
    } else {
      enqueue_of(static_cast<const float*>(source), static_cast<float*>(target), step, stream);
    }
  }

 private:
  template <typename T>
  void enqueue_of(const T* from, T* to, const StepParameters* step, const TeamStream& stream) const {
    const std::int64_t elements = shape_.elements();
    if (channels_last_) {
      launch<mask_channels_last<T>>(blocks_for(elements), stream, from, to, elements, shape_[1], shape_[2] * shape_[3],
                                    step, constants_);
    } else {
      launch<mask_quads<T>>(blocks_for((elements + 3) / 4), stream, from, to, elements, step, constants_);
    }
  }

  Shape shape_;
  bool is_bfloat16_;
  bool channels_last_;
  std::optional<ColumnBlock> block_;
  elementwise::DropoutConstants constants_;
};

}  // namespace

std::unique_ptr<Operator> make_operator(const DropoutSpec& spec, const PrepareOptions& options) {
  ARBALEST_CHECK(spec.ratio >= 0.0F && spec.ratio < 1.0F);
  ARBALEST_CHECK(!spec.block || (spec.input.shape().rank() == 2 && !is_bfloat16(spec.input)));
  ARBALEST_CHECK(spec.input.shape().elements() <= elementwise::kMaxDropoutElements);
  OperatorTraits traits;
  traits.output = spec.input;
  traits.in_place_forward = true;
  if (options.mode == OperatorMode::kInference) {
    const auto copy = [bytes = spec.input.bytes()](const ForwardAddresses& addresses, const StreamContext& context) {
      if (addresses.output == addresses.input) return;
      for_each_replica(context.stream, [&](const auto& place) {
        ARBALEST_CUDA(cudaMemcpyAsync(place(addresses.output), place(addresses.input), bytes, cudaMemcpyDeviceToDevice,
                                      context.stream.handle));
      });
    };
    return std::make_unique<KernelOperator>(std::move(traits), copy, nullptr);
  }

  traits.in_place_backward = true;
  const Masking masking(spec);
  const auto forward = [masking](const ForwardAddresses& addresses, const StreamContext& context) {
    masking.enqueue(addresses.input, addresses.output, addresses.step, context.stream);
  };
  KernelOperator::Backward backward;
  if (options.input_gradient) {
    backward = [masking](const BackwardAddresses& addresses, const StreamContext& context) {
      masking.enqueue(addresses.output_gradient, addresses.input_gradient, addresses.step, context.stream);
    };
  }
  return std::make_unique<KernelOperator>(std::move(traits), forward, std::move(backward));
}

}  // namespace arbalest::engine::cuda
