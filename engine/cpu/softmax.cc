#include "engine/cpu/layout.h"
#include "engine/cpu/operators.h"
#include "engine/cpu/parallel.h"
#include "engine/cpu/program.h"
#include "engine/cpu/rows.h"
#include "engine/cpu/softmax_rows.h"
#include "engine/error.h"

namespace arbalest::engine::cpu {

std::unique_ptr<Operator> make_operator(const SoftmaxSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine) {
  const Shape& shape = spec.input.shape();
  ARBALEST_CHECK(shape.rank() == 2);
  const dnnl::memory::desc tensor = descriptor(spec.input);
  ARBALEST_CHECK(tensor == plain_descriptor(shape, DType::kFloat32));
  const std::int64_t rows = shape[0];
  const std::int64_t classes = shape[1];

  Program forward(engine);
  forward.add([=](const TaskContext& context, const Addresses& addresses) {
    const auto* input = static_cast<const float*>(addresses[Role::kInput]);
    auto* output = static_cast<float*>(addresses[Role::kOutput]);
    for_each_part(threads_for_rows(context.threads, rows, classes), rows, [&](std::int64_t n) {
      float* row = output + n * classes;
      const float sum = sum_exponentials(input + n * classes, classes, row).sum;
      for (std::int64_t c = 0; c < classes; ++c) row[c] /= sum;
    });
  });
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
    backward.add([=](const TaskContext& context, const Addresses& addresses) {
      const auto* output = static_cast<const float*>(addresses[Role::kOutput]);
      const auto* output_gradient = static_cast<const float*>(addresses[Role::kOutputGradient]);
      auto* input_gradient = static_cast<float*>(addresses[Role::kInputGradient]);
      for_each_part(threads_for_rows(context.threads, rows, classes), rows, [&](std::int64_t n) {
        const float* p = output + n * classes;
        const float* arriving = output_gradient + n * classes;
        const float mean = dot(p, arriving, classes);
        for (std::int64_t c = 0; c < classes; ++c) input_gradient[n * classes + c] = p[c] * (arriving[c] - mean);
      });
    });
  }
  return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::move(backward));
}

}  // namespace arbalest::engine::cpu
