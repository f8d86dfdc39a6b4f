#include "tests/cudnn/zoo_convolutions.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "dataflow/plan.h"
#include "engine/device.h"
#include "engine/devices.h"
#include "tests/support/zoo_layers.h"

namespace arbalest::tests::cudnn {

namespace {

using engine::cuda::Order;

struct UsualJob {
  const char* model;
  dataflow::InputDescription input;
  std::int64_t examples;  // of a mini-batch
};

// The mini-batches of configs/, and for ImageNet those of one learner among several.
std::vector<UsualJob> usual_jobs() {
  const dataflow::InputDescription mnist{{1, 28, 28}, 10}, cifar{{3, 32, 32}, 10}, imagenet{{3, 224, 224}, 1000};
  return {{"lenet {}", mnist, 32},
          {"lenet {}", mnist, 16},
          {"lenet {}", {{3, 28, 28}, 10}, 16},
          {"resnet_cifar { depth: 32 }", cifar, 64},
          {"resnet_cifar { depth: 20 }", cifar, 16},
          {"cifar_quick {}", cifar, 64},
          {"vgg { depth: 16 batch_norm: true head: CIFAR }", {{3, 32, 32}, 100}, 64},
          {"alexnet {}", imagenet, 32},
          {"vgg { depth: 16 }", imagenet, 32},
          {"resnet { depth: 18 }", imagenet, 32},
          {"resnet { depth: 50 }", imagenet, 32},
          {"inception_v3 {}", {{3, 299, 299}, 1000}, 32},
          {"mobilenet_v1 {}", imagenet, 32}};
}

// An order that a tensor with one channel or one pixel does not tell, since it has both.
bool tells_order(const engine::Shape& shape) { return shape[1] > 1 && shape[2] * shape[3] > 1; }

// The one order that all three tensors of a convolution have.
Order common_order(const engine::Layout& input, const engine::OperatorTraits& traits) {
  for (const engine::Layout* layout : {&traits.output, &input, &traits.parameters[0]}) {
    if (tells_order(layout->shape())) return engine::cuda::order_of(*layout);
  }
  return Order::kChannelsLast;
}

// The same convolution of one image, which is only as large as the window needs to have two places in each direction.
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

// A device that notes which convolutions it prepares. It lets the CUDA device prepare a small one in place of each, so
// that the trials which belong to a preparation do not compute large convolutions on the stand-in.
class NotingDevice final : public engine::Device {
 public:
  struct Note {
    Convolution convolution;
    bool input_gradient;
  };

  NotingDevice() : device_(engine::open_device(engine::parse_device("cuda:0"))) {}

  const std::vector<Note>& notes() const { return notes_; }

  const std::string& name() const noexcept override { return device_->name(); }
  bool is_cuda() const noexcept override { return device_->is_cuda(); }
  int cores() const noexcept override { return device_->cores(); }
  engine::Buffer allocate(std::size_t bytes) override { return device_->allocate(bytes); }
  engine::Buffer allocate_host(std::size_t bytes) override { return device_->allocate_host(bytes); }
  std::size_t free_memory() const override { return device_->free_memory(); }
  std::unique_ptr<engine::Stream> create_stream(const engine::StreamOptions& options) override {
    return device_->create_stream(options);
  }
  std::size_t stream_bytes(const engine::StreamOptions& options) const override {
    return device_->stream_bytes(options);
  }
  std::unique_ptr<engine::Operator> prepare(const engine::OperatorSpec& spec,
                                            const engine::PrepareOptions& options) override {
    const auto* convolution = std::get_if<engine::Conv2dSpec>(&spec);
    return convolution == nullptr ? device_->prepare(spec, options) : note(*convolution, options);
  }
  engine::Layout plain_layout(const engine::Shape& shape, engine::DType dtype) const override {
    return device_->plain_layout(shape, dtype);
  }
  void convert(const engine::Layout& source_layout, const void* source, const engine::Layout& target_layout,
               void* target) override {
    device_->convert(source_layout, source, target_layout, target);
  }

 private:
  std::unique_ptr<engine::Operator> note(const engine::Conv2dSpec& spec, const engine::PrepareOptions& options) {
    const engine::Conv2dSpec small = shrink(spec);
    engine::OperatorTraits traits = device_->prepare(small, options)->traits();
    const Order order = common_order(small.input, traits);
    const engine::Shape& input = spec.input.shape();
    const engine::Shape output = window_output_shape(input, spec.window, spec.filters);
    traits.output = engine::cuda::make_layout(output, traits.output.dtype(), engine::cuda::order_of(traits.output));

    engine::Window window = spec.window;
    window.extra_padding = {0, 0};
    const engine::Extent2d& extra = spec.window.extra_padding;
    const engine::Shape read{input[0], input[1], input[2] + extra.height, input[3] + extra.width};
    notes_.push_back(
        {{read, weights_shape(spec), output, window, options.precision, order}, options.wants_gradient(0)});
    return std::make_unique<PlannedConvolution>(std::move(traits));
  }

  std::unique_ptr<engine::Device> device_;
  std::vector<Note> notes_;
};

}  // namespace

std::vector<ZooConvolution> zoo_convolutions(engine::Precision precision) {
  std::vector<ZooConvolution> found;
  for (const UsualJob& job : usual_jobs()) {
    const auto graph = dataflow::Graph::build(job.input, zoo_layers(job.model, job.input));
    NotingDevice device;
    const dataflow::Plan plan(graph, device, {.batch = job.examples, .precision = precision});
    for (const NotingDevice::Note& note : device.notes()) {
      const auto same = [&](const ZooConvolution& other) { return other.convolution == note.convolution; };
      const auto place = std::ranges::find_if(found, same);
      if (place != found.end()) {
        place->input_gradient |= note.input_gradient;
      } else {
        found.push_back(
            {fmt::format("{}, {} examples", job.model, job.examples), note.convolution, note.input_gradient});
      }
    }
  }
  return found;
}

}  // namespace arbalest::tests::cudnn
