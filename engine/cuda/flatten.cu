#include "engine/cuda/kernel_operator.h"
#include "engine/cuda/layout.h"
#include "engine/cuda/operators.h"
#include "engine/cuda/transpose.h"
#include "engine/error.h"

namespace arbalest::engine::cuda {

std::unique_ptr<Operator> make_operator(const FlattenSpec& spec, const PrepareOptions& options) {
  const Shape& shape = spec.input.shape();
  ARBALEST_CHECK(shape.rank() >= 2);
  const Order order = order_of(spec.input);
  const bool is_plain = order == Order::kCanonical;

  OperatorTraits traits;
  traits.output = make_layout({shape[0], shape.elements_per_example()}, spec.input.dtype(), Order::kCanonical);
  traits.in_place_forward = is_plain;
  const auto forward = [shape, order](const ForwardAddresses& addresses, const StreamContext& context) {
    transpose(static_cast<const float*>(addresses.input), static_cast<float*>(addresses.output), shape, order,
              Order::kCanonical, context.stream);
  };
  if (options.mode == OperatorMode::kInference) {
    return std::make_unique<KernelOperator>(std::move(traits), forward, nullptr);
  }

  traits.in_place_backward = is_plain;
  KernelOperator::Backward backward;
  if (options.input_gradient) {
    backward = [shape, order](const BackwardAddresses& addresses, const StreamContext& context) {
      transpose(static_cast<const float*>(addresses.output_gradient), static_cast<float*>(addresses.input_gradient),
                shape, Order::kCanonical, order, context.stream);
    };
  }
  return std::make_unique<KernelOperator>(std::move(traits), forward, std::move(backward));
}

}  // namespace arbalest::engine::cuda
