#include "tests/cudnn/noting_device.h"

#include <algorithm>
#include <utility>

#include "engine/backends/devices.h"
#include "engine/cuda/convolution/one_sided_padding.h"

namespace arbalest::tests::cudnn {

namespace {

using engine::cuda::Order;

// Whether the tensor has a unique order. A tensor with one channel or one pixel has both orders.
bool tells_order(const engine::Shape& shape) { return shape[1] > 1 && shape[2] * shape[3] > 1; }

// Returns the common order of the convolution's three tensors.
Order common_order(const engine::Layout& input, const engine::OperatorTraits& traits) {
  for (const engine::Layout* layout : {&traits.output, &input, &traits.parameters[0]}) {
    if (tells_order(layout->shape())) return engine::cuda::order_of(*layout);
  }
  return Order::kChannelsLast;
}

// Returns the convolution for a single image that is just large enough for two window positions in each direction.
engine::Conv2dSpec shrink(const engine::Conv2dSpec& spec) {
  const engine::Shape& input = spec.input.shape();
  const engine::Extent2d span = window_span(spec.window);
  const engine::Shape small{1, input[1], std::min(input[2], span.height + spec.window.stride.height),
                            std::min(input[3], span.width + spec.window.stride.width)};
  engine::Conv2dSpec shrunk = spec;
  shrunk.input = engine::cuda::make_layout(small, spec.input.dtype(), engine::cuda::order_of(spec.input));
  return shrunk;
}

// An operator of a plan that is never run.
class PlannedConvolution final : public engine::Operator {
 public:
  explicit PlannedConvolution(engine::OperatorTraits traits) { traits_ = std::move(traits); }

 private:
  void forward(engine::Stream&, const char*, const engine::ForwardOperands&) const override { ARBALEST_CHECK(false); }
  void backward(engine::Stream&, const char*, const engine::BackwardOperands&) const override { ARBALEST_CHECK(false); }
};

}  // namespace

NotingDevice::NotingDevice() : ForwardingDevice(engine::open_device(engine::parse_device("cuda:0"))) {}

std::unique_ptr<engine::Operator> NotingDevice::prepare(const engine::OperatorSpec& spec,
                                                        const engine::PrepareOptions& options) {
  const auto* convolution = std::get_if<engine::Conv2dSpec>(&spec);
  return convolution == nullptr ? ForwardingDevice::prepare(spec, options) : note(*convolution, options);
}

std::unique_ptr<engine::Operator> NotingDevice::note(const engine::Conv2dSpec& spec,
                                                     const engine::PrepareOptions& options) {
  const engine::Conv2dSpec small = shrink(spec);
  engine::OperatorTraits traits = ForwardingDevice::prepare(small, options)->traits();
  const Order order = common_order(small.input, traits);
  const engine::Shape& input = spec.input.shape();
  const engine::Shape output = window_output_shape(input, spec.window, spec.filters);
  traits.output = engine::cuda::make_layout(output, traits.output.dtype(), engine::cuda::order_of(traits.output));

  const engine::cuda::EvenlyPadded read = engine::cuda::pad_evenly(input, spec.window);
  notes_.push_back(
      {{read.images, weights_shape(spec), output, read.window, options.precision, order}, options.wants_gradient(0)});
  return std::make_unique<PlannedConvolution>(std::move(traits));
}

}  // namespace arbalest::tests::cudnn
