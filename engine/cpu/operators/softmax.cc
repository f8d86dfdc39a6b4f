#include "engine/base/error.h"
#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/onednn/program.h"
#include "engine/cpu/operators/operators.h"
#include "engine/cpu/operators/rows.h"
#include "engine/cpu/operators/softmax_rows.h"
#include "engine/cpu/runtime/parallel.h"

namespace arbalest::engine::cpu {

std::unique_ptr<Operator> make_operator(const SoftmaxSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine) {
  const Shape& shape = spec.input.shape();
  ARBALEST_CHECK(shape.rank() == 2);
  const dnnl::memory::desc tensor = descriptor(spec.input);
  ARBALEST_CHECK(tensor == plain_descriptor(shape, spec.input.dtype()));
  const dnnl::memory::desc floats = plain_descriptor(shape, DType::kFloat32);  // the loops work on these
  const std::int64_t rows = shape[0];
  const std::int64_t classes = shape[1];

  Program forward(engine);
  const Operand output{Role::kOutput, tensor};
  const Operand logits = forward.read_as({Role::kInput, tensor}, floats);
  const Operand probabilities = forward.write_as(output, floats);
  forward.add([=](const TaskContext& context, const Addresses& addresses) {
    const auto* rows_of_logits = logits.at<const float>(addresses);
    auto* written = probabilities.at<float>(addresses);
    for_each_part(threads_for_rows(context.threads, rows, classes), rows, [&](std::int64_t n) {
      float* row = written + n * classes;
      const float sum = sum_exponentials(rows_of_logits + n * classes, classes, row).sum;
      for (std::int64_t c = 0; c < classes; ++c) row[c] /= sum;
    });
  });
  forward.deliver(probabilities, output);
  OperatorTraits traits;
  traits.output = spec.input;
  traits.in_place_forward = true;
  if (options.mode == OperatorMode::kInference) {
    return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::nullopt);
  }

  traits.backward_reads_output = true;
  traits.in_place_backward = true;
  Program backward(engine);
  if (options.input_gradient) {
    const Operand target{Role::kInputGradient, tensor};
    const Operand read = backward.read_as(output, floats);
    const Operand output_gradient = backward.read_as({Role::kOutputGradient, tensor}, floats);
    const Operand input_gradient = backward.write_as(target, floats);
    backward.add([=](const TaskContext& context, const Addresses& addresses) {
      for_each_part(threads_for_rows(context.threads, rows, classes), rows, [&](std::int64_t n) {
        const float* p = read.at<const float>(addresses) + n * classes;
        const float* arriving = output_gradient.at<const float>(addresses) + n * classes;
        float* leaving = input_gradient.at<float>(addresses) + n * classes;
        const float mean = dot(p, arriving, classes);
        for (std::int64_t c = 0; c < classes; ++c) leaving[c] = p[c] * (arriving[c] - mean);
      });
    });
    backward.deliver(input_gradient, target);
  }
  return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::move(backward));
}

}  // namespace arbalest::engine::cpu
