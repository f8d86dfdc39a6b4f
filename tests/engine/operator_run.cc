#include "tests/engine/operator_run.h"

#include <cstddef>

#include "engine/backends/devices.h"
#include "engine/elementwise/bfloat16.h"
#include "tests/support/bfloat16.h"
#include "tests/support/catch.h"
#include "tests/support/device_memory.h"

namespace arbalest::tests {

using engine::Buffer;
using engine::Device;
using engine::DType;
using engine::Layout;
using engine::Operator;
using engine::OperatorMode;
using engine::OperatorTraits;
using engine::Precision;
using engine::PrepareOptions;
using engine::Shape;

namespace {

// As a float this is about 12, as a label it is outside all classes. Guards after each output must keep these bytes.
constexpr unsigned char kGarbage = 0x41;
constexpr std::size_t kGuard = 256;  // bytes

// All buffers of one use of an operator.
struct Buffers {
  Buffer input, labels, output, output_gradient, input_gradient, saved, scratch, step;
  Buffer arriving;  // content of output_gradient before each pass
  Buffer addend;
  std::vector<Buffer> parameters, parameter_gradients;
  std::vector<const void*> inputs, parameter_addresses;
  std::vector<void*> gradient_addresses;
  void* output_address = nullptr;
  void* input_gradient_address = nullptr;
  std::vector<Buffer> others, other_gradients;
  std::vector<void*> other_gradient_addresses;
  std::vector<const void*> guards;
};

Buffer garbage(Device& device, std::size_t bytes, Buffers& buffers) {
  if (bytes == 0) return {};
  Buffer buffer = upload(device, std::vector(bytes + kGuard, kGarbage));
  buffers.guards.push_back(buffer.as<std::byte>() + bytes);
  return buffer;
}

Buffer to_device(Device& device, const Layout& layout, const Values& values) {
  if (layout.dtype() == DType::kInt32) return upload(device, std::vector<std::int32_t>(values.begin(), values.end()));
  Floats floats;
  for (const double value : values) floats.push_back(static_cast<float>(value));
  Buffer buffer = device.allocate(layout.bytes());
  device.convert(device.plain_layout(layout.shape(), DType::kFloat32), floats.data(), layout, buffer.data());
  return buffer;
}

// Returns a copy in low precision, with the same layout.
Buffer rounded(Device& device, const Buffer& weights, const Layout& layout) {
  std::vector<engine::BFloat16> halves;
  for (const float weight : download<float>(device, weights.data(), layout.bytes() / sizeof(float))) {
    halves.push_back(engine::elementwise::to_bfloat16(weight));
  }
  return upload(device, halves);
}

void allocate(Device& device, const OperatorCase& of, const OperatorTraits& traits, Buffers& buffers) {
  buffers.input = to_device(device, of.input, of.input_values);
  buffers.labels = upload(device, of.labels);
  buffers.step = upload(device, std::vector{of.step});
  buffers.output = garbage(device, traits.output.bytes(), buffers);
  buffers.saved = garbage(device, traits.saved_bytes, buffers);
  buffers.scratch = garbage(device, traits.scratch_bytes, buffers);
  buffers.input_gradient = garbage(device, of.input.bytes(), buffers);
  buffers.output_gradient = garbage(device, traits.output.bytes(), buffers);
  if (!of.addend.empty()) buffers.addend = to_device(device, of.input, of.addend);
  if (!of.output_gradient.empty()) buffers.arriving = to_device(device, traits.output, of.output_gradient);
  for (std::size_t p = 0; p < traits.parameters.size(); ++p) {
    buffers.parameters.push_back(to_device(device, traits.parameters[p], of.parameters.at(p)));
    if (p == 0 && traits.low_precision_weights) {
      buffers.parameters[0] = rounded(device, buffers.parameters[0], traits.parameters[0]);
    }
    buffers.parameter_addresses.push_back(buffers.parameters.back().data());
    buffers.parameter_gradients.push_back(garbage(device, traits.parameters[p].bytes(), buffers));
    buffers.gradient_addresses.push_back(buffers.parameter_gradients.back().data());
  }
  buffers.inputs = {buffers.input.data()};
  if (!of.labels.empty()) buffers.inputs.push_back(buffers.labels.data());
  const bool first_may = !traits.symmetric_inputs || of.input == traits.output;
  const bool in_place_forward = of.in_place && traits.in_place_forward;
  const bool in_place_backward = of.in_place && traits.in_place_backward;
  buffers.output_address = in_place_forward && first_may ? buffers.input.data() : buffers.output.data();
  buffers.input_gradient_address = in_place_backward && first_may && traits.in_place_backward_input == 0
                                       ? buffers.output_gradient.data()
                                       : buffers.input_gradient.data();
  for (const OtherInput& other : of.others) {
    buffers.others.push_back(to_device(device, other.layout, other.values));
    buffers.inputs.push_back(buffers.others.back().data());
    buffers.other_gradients.push_back(garbage(device, other.layout.bytes(), buffers));
    const bool may = traits.symmetric_inputs && other.layout == traits.output;
    const bool may_backward = may || traits.in_place_backward_input == buffers.others.size();
    if (in_place_forward && may) buffers.output_address = buffers.others.back().data();
    buffers.other_gradient_addresses.push_back(
        in_place_backward && may_backward ? buffers.output_gradient.data() : buffers.other_gradients.back().data());
  }
}

void forward(const Operator& op, engine::Stream& stream, const Buffers& buffers) {
  engine::ForwardOperands operands;
  operands.inputs = buffers.inputs;
  operands.output = buffers.output_address;
  operands.parameters = buffers.parameter_addresses;
  operands.parameter_gradients = buffers.gradient_addresses;
  if (op.traits().forward_writes_gradient) operands.input_gradient = buffers.input_gradient_address;
  operands.saved = buffers.saved.data();
  operands.scratch = buffers.scratch.data();
  operands.step = buffers.step.as<const engine::StepParameters>();
  op.forward(stream, "operator forward", operands);
}

void backward(const Operator& op, engine::Stream& stream, const Buffers& buffers, const PrepareOptions& options,
              const OperatorCase& of) {
  const OperatorTraits& traits = op.traits();
  const bool is_loss = !of.labels.empty();
  // Operands that the traits do not ask for are null pointers.
  std::vector<const void*> inputs = buffers.inputs;
  if (!traits.backward_reads_inputs) std::fill(inputs.begin(), inputs.end() - (is_loss ? 1 : 0), nullptr);
  if (traits.backward_reads_first_input_only) std::fill(inputs.begin() + 1, inputs.end(), nullptr);
  std::vector<void*> input_gradients{buffers.input_gradient_address};
  for (void* other : buffers.other_gradient_addresses) input_gradients.push_back(other);
  for (std::size_t k = 0; k < input_gradients.size(); ++k) {
    if (!options.wants_gradient(k)) input_gradients[k] = nullptr;
  }
  engine::BackwardOperands operands;
  operands.inputs = inputs;
  operands.output = traits.backward_reads_output ? buffers.output_address : nullptr;
  if (!is_loss) {
    stream.copy(buffers.output_gradient.data(), buffers.arriving.data(), traits.output.bytes(), "output gradient");
    operands.output_gradient = buffers.output_gradient.data();
  }
  operands.input_gradients = input_gradients;
  if (!of.addend.empty()) {
    operands.addend = buffers.addend.data();
    if (of.in_place) {
      stream.copy(buffers.input_gradient_address, buffers.addend.data(), of.input.bytes(), "addend");
      operands.addend = buffers.input_gradient_address;
    }
  }
  operands.parameters = buffers.parameter_addresses;
  operands.parameter_gradients = buffers.gradient_addresses;
  operands.saved = buffers.saved.data();
  operands.scratch = buffers.scratch.data();
  operands.step = buffers.step.as<const engine::StepParameters>();
  op.backward(stream, "operator backward", operands);
}

// Converts a tensor to canonical order, and records in `run` whether all padding is zero.
Floats read(Device& device, const Layout& layout, const void* data, OperatorRun& run) {
  const Layout plain = device.plain_layout(layout.shape(), DType::kFloat32);
  Floats floats(static_cast<std::size_t>(layout.shape().elements()));
  device.convert(layout, data, plain, floats.data());
  const Buffer clean = device.allocate(layout.bytes());
  device.convert(plain, floats.data(), layout, clean.data());
  const auto bytes = [&](const void* of) { return download<std::byte>(device, of, layout.bytes()); };
  run.padding_is_zero = run.padding_is_zero && bytes(clean.data()) == bytes(data);
  return floats;
}

}  // namespace

std::unique_ptr<Device> open_test_device() { return engine::open_device(engine::parse_device(ARBALEST_TEST_DEVICE)); }

std::vector<Arithmetic> arithmetics(const Device& device) {
  std::vector<Arithmetic> all{{"FP32", Precision::kFloat32, DType::kFloat32, 1e-5}};
  // In TF32 each factor is rounded or truncated to 10 fractional bits. In BF16 a result is rounded to 7 fractional
  // bits, and twice if a bias is added.
  if (device.is_cuda()) all.push_back({"TF32", Precision::kTensorFloat32, DType::kFloat32, 0x1p-9});
  if (computes_bfloat16(device)) all.push_back({"BF16", Precision::kBFloat16, DType::kBFloat16, 0x1p-8});
  return all;
}

std::vector<Arithmetic> tensor_types(const Device& device) {
  std::vector<Arithmetic> types = arithmetics(device);
  std::erase_if(types, [](const Arithmetic& in) { return in.precision == Precision::kTensorFloat32; });
  return types;
}

Values representable(Values values, DType dtype) {
  for (double& value : values) {
    const auto single = static_cast<float>(value);
    const bool halves = dtype == DType::kBFloat16;
    value = halves ? engine::elementwise::to_float(engine::elementwise::to_bfloat16(single)) : single;
  }
  return values;
}

Layout native_image_layout(Device& device, const Shape& shape, DType dtype) {
  const Layout input = device.plain_layout({shape[0], shape[1], shape[2] + 1, shape[3] + 1}, dtype);
  const Precision precision = dtype == DType::kBFloat16 ? Precision::kBFloat16 : Precision::kFloat32;
  const engine::Conv2dSpec convolution{input, shape[1], {{2, 2}, {1, 1}}, false};
  return device.prepare(convolution, {.precision = precision})->traits().output;
}

OperatorRun run_operator(Device& device, const OperatorCase& of, const PrepareOptions& options) {
  const std::unique_ptr<Operator> op = device.prepare(of.spec, options);
  Buffers buffers;
  allocate(device, of, op->traits(), buffers);
  const std::unique_ptr<engine::Stream> stream = device.create_stream({"test", options.threads});
  const bool is_loss = !of.labels.empty();
  const bool runs_backward = options.mode == OperatorMode::kTraining && (is_loss || !of.output_gradient.empty());

  const auto enqueue = [&] {
    forward(*op, *stream, buffers);
    if (runs_backward) backward(*op, *stream, buffers, options, of);
  };
  if (of.replayed) {
    stream->begin_recording();
    enqueue();
    const std::unique_ptr<engine::TaskGraph> graph = stream->end_recording();
    stream->launch(*graph, "first replay");
    stream->launch(*graph, "second replay");
    stream->record().synchronize();
  } else {
    enqueue();
    stream->record().synchronize();
  }

  for (const void* guard : buffers.guards) {
    CHECK(download<unsigned char>(device, guard, kGuard) == std::vector(kGuard, kGarbage));
  }
  OperatorRun run;
  run.output = read(device, op->traits().output, buffers.output_address, run);
  if (!runs_backward) return run;
  if (options.wants_gradient(0)) run.input_gradient = read(device, of.input, buffers.input_gradient_address, run);
  for (std::size_t k = 0; k < of.others.size(); ++k) {
    const void* address = buffers.other_gradient_addresses[k];
    run.other_gradients.push_back(options.wants_gradient(k + 1) ? read(device, of.others[k].layout, address, run)
                                                                : Floats{});
  }
  const bool may_write = op->traits().overwrites_output_gradient || (of.in_place && op->traits().in_place_backward);
  if (!is_loss && !may_write) {
    const auto bytes = [&](const Buffer& buffer) {
      return download<std::byte>(device, buffer.data(), op->traits().output.bytes());
    };
    CHECK(bytes(buffers.output_gradient) == bytes(buffers.arriving));
  }
  for (std::size_t p = 0; p < buffers.parameters.size(); ++p) {
    const Layout& layout = op->traits().parameters[p];
    run.parameter_gradients.push_back(read(device, layout, buffers.parameter_gradients[p].data(), run));
  }
  return run;
}

}  // namespace arbalest::tests
