#include <algorithm>

#include "engine/base/error.h"
#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/onednn/program.h"
#include "engine/cpu/operators/operators.h"

namespace arbalest::engine::cpu {

namespace {

bool is_labeled(float label) { return label == label; }

// The predictions and their gradient as float32 for the loops.
dnnl::memory::desc floats_of(const Layout& predictions) {
  return plain_descriptor(predictions.shape(), DType::kFloat32);
}

Program make_forward(const dnnl::engine& engine, const Layout& layout, float weight, bool adds) {
  Program program(engine);
  const Operand read = program.read_as({Role::kInput, descriptor(layout)}, floats_of(layout));
  program.add([=, examples = layout.shape()[0]](const TaskContext&, const Addresses& addresses) {
    const auto* predictions = read.at<const float>(addresses);
    const auto* labels = static_cast<const float*>(addresses[Role::kLabels]);
    double sum = 0.0;
    for (std::int64_t n = 0; n < examples; ++n) {
      if (!is_labeled(labels[n])) continue;
      const double error = static_cast<double>(predictions[n]) - static_cast<double>(labels[n]);
      sum += error * error;
    }
    auto* result = static_cast<float*>(addresses[Role::kOutput]);
    *result = static_cast<float>(static_cast<double>(weight) * sum) + (adds ? *result : 0.0F);
  });
  return program;
}

Program make_backward(const dnnl::engine& engine, const Layout& layout, float weight) {
  Program program(engine);
  const Operand read = program.read_as({Role::kInput, descriptor(layout)}, floats_of(layout));
  const Operand target{Role::kInputGradient, descriptor(layout)};
  const Operand written = program.write_as(target, floats_of(layout));
  program.add([=, examples = layout.shape()[0]](const TaskContext&, const Addresses& addresses) {
    const auto* predictions = read.at<const float>(addresses);
    const auto* labels = static_cast<const float*>(addresses[Role::kLabels]);
    auto* gradient = written.at<float>(addresses);
    const auto labeled = static_cast<float>(std::count_if(labels, labels + examples, is_labeled));
    for (std::int64_t n = 0; n < examples; ++n) {
      gradient[n] = is_labeled(labels[n]) ? weight * (2.0F * (predictions[n] - labels[n]) / labeled) : 0.0F;
    }
  });
  program.deliver(written, target);
  return program;
}

}  // namespace

std::unique_ptr<Operator> make_operator(const SquaredErrorSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine) {
  const Shape& shape = spec.predictions.shape();
  ARBALEST_CHECK(descriptor(spec.predictions) == plain_descriptor({shape[0], 1}, spec.predictions.dtype()));
  ARBALEST_CHECK(spec.labels.shape() == Shape{shape[0]} && spec.labels.dtype() == DType::kFloat32);
  const bool training = options.mode == OperatorMode::kTraining;
  OperatorTraits traits;
  traits.output = make_layout(plain_descriptor({1}, DType::kFloat32));
  traits.backward_reads_inputs = training;
  Program forward = make_forward(engine, spec.predictions, training ? spec.weight : 1.0F, options.adds_to_loss);
  std::optional<Program> backward;
  if (training)
    backward = options.input_gradient ? make_backward(engine, spec.predictions, spec.weight) : Program(engine);
  return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::move(backward));
}

}  // namespace arbalest::engine::cpu
