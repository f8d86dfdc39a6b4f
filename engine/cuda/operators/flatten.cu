#include "engine/base/error.h"
#include "engine/cuda/kernels/layout.h"
#include "engine/cuda/kernels/transpose.h"
#include "engine/cuda/operators/kernel_operator.h"
#include "engine/cuda/operators/operators.h"

namespace arbalest::engine::cuda {

std::unique_ptr<Operator> make_operator(const FlattenSpec& spec, const PrepareOptions& options) {
  const Shape shape = spec.input.shape();
  ARBALEST_CHECK(shape.rank() >= 2);
  const Arrangement own = arrangement_of(spec.input);
  const Arrangement flat{own.dtype, Order::kCanonical};
  const bool is_plain = own == flat;

  OperatorTraits traits;
  traits.output = make_layout({shape[0], shape.elements_per_example()}, spec.input.dtype(), Order::kCanonical);
  traits.in_place_forward = is_plain;
  const auto forward = [=](const ForwardAddresses& addresses, const StreamContext& context) {
    transpose(addresses.input, own, addresses.output, flat, shape, context.stream);
  };
  if (options.mode == OperatorMode::kInference) {
    return std::make_unique<KernelOperator>(std::move(traits), forward, nullptr);
  }

  traits.in_place_backward = is_plain;
  traits.passes_gradient = is_plain;
  KernelOperator::Backward backward;
  if (options.input_gradient) {
    backward = [=](const BackwardAddresses& addresses, const StreamContext& context) {
      transpose(addresses.output_gradient, flat, addresses.input_gradient, own, shape, context.stream);
    };
  }
  return std::make_unique<KernelOperator>(std::move(traits), forward, std::move(backward));
}

}  // namespace arbalest::engine::cuda
