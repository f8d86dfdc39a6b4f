// The common base of operators with several inputs. An input whose layout or type differs from the output's is copied.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "engine/base/alignment.h"
#include "engine/base/error.h"
#include "engine/cuda/kernels/layout.h"
#include "engine/cuda/kernels/transpose.h"
#include "engine/cuda/runtime/stream.h"
#include "engine/operator.h"

namespace arbalest::engine::cuda {

class MultiInputOperator : public Operator {
 public:
  void forward(Stream& stream, const char* label, const ForwardOperands& operands) const final {
    std::vector<const void*> inputs(operands.inputs.begin(), operands.inputs.end());
    auto* scratch = static_cast<std::byte*>(operands.scratch);
    as_cuda(stream).submit(
        label, [this, inputs = std::move(inputs), output = operands.output, scratch](const StreamContext& context) {
          std::vector<const void*> read;
          for (std::size_t k = 0; k < inputs.size(); ++k) {
            read.push_back(inputs[k]);
            if (!is_copied(k)) continue;
            read.back() = scratch + places_[k];
            transpose(inputs[k], lies_[k], scratch + places_[k], read_as_, shapes_[k], context.stream);
          }
          join(read, output, context.stream);
        });
  }

  void backward(Stream& stream, const char* label, const BackwardOperands& operands) const final {
    std::vector<void*> gradients(operands.input_gradients.begin(), operands.input_gradients.end());
    auto* scratch = static_cast<std::byte*>(operands.scratch);
    if (passes_all(operands)) return;
    as_cuda(stream).submit(
        label, [this, gradients = std::move(gradients), output = operands.output,
                arriving = static_cast<const void*>(operands.output_gradient), scratch](const StreamContext& context) {
          std::vector<void*> written = gradients;
          for (std::size_t k = 0; k < written.size(); ++k) {
            if (written[k] != nullptr && is_copied(k)) written[k] = scratch + places_[k];
          }
          split(arriving, output, written, context.stream);
          for (std::size_t k = 0; k < written.size(); ++k) {
            if (written[k] == gradients[k]) continue;
            transpose(written[k], read_as_, gradients[k], lies_[k], shapes_[k], context.stream);
          }
        });
  }

 protected:
  // `shape`: the output's shape. Sets the output's layout and the scratch memory.
  MultiInputOperator(std::span<const Layout> inputs, const Shape& shape) {
    for (const Layout& input : inputs) {
      if (is_bfloat16(input)) read_as_.dtype = DType::kBFloat16;
      if (order_of(input) == Order::kChannelsLast) read_as_.order = Order::kChannelsLast;
    }
    traits_.output = make_layout(shape, read_as_.dtype, read_as_.order);
    for (const Layout& input : inputs) {
      const Layout wanted = make_layout(input.shape(), read_as_.dtype, read_as_.order);
      shapes_.push_back(input.shape());
      lies_.push_back(arrangement_of(input));
      is_copied_.push_back(wanted != input);
      places_.push_back(traits_.scratch_bytes);
      if (is_copied_.back()) traits_.scratch_bytes += aligned(wanted.bytes());
    }
  }

  bool is_copied(std::size_t input) const { return is_copied_[input]; }
  const Shape& shape(std::size_t input) const { return shapes_[input]; }
  // Element type of the output and of all tensors that join() and split() get.
  DType dtype() const { return read_as_.dtype; }
  bool channels_last() const { return read_as_.order == Order::kChannelsLast; }

 private:
  // Each enqueues one pass. `gradients`: null for gradients that are not wanted.
  virtual void join(const std::vector<const void*>& inputs, void* output, const TeamStream& stream) const = 0;
  virtual void split(const void* arriving, const void* output, const std::vector<void*>& gradients,
                     const TeamStream& stream) const = 0;
  // Whether backward has nothing to do: each wanted gradient is in the output gradient's buffer.
  bool passes_all(const BackwardOperands& operands) const {
    return traits_.passes_gradient && std::ranges::all_of(operands.input_gradients, [&](const void* gradient) {
             return gradient == nullptr || gradient == operands.output_gradient;
           });
  }

  Arrangement read_as_;
  std::vector<Shape> shapes_;  // by input, as are all members below
  std::vector<Arrangement> lies_;
  std::vector<bool> is_copied_;
  std::vector<std::size_t> places_;  // offsets of the copies in scratch
};

}  // namespace arbalest::engine::cuda
