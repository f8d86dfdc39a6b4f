#include "engine/cpu/layout.h"
#include "engine/cpu/operators.h"
#include "engine/cpu/program.h"
#include "engine/error.h"

namespace arbalest::engine::cpu {

namespace {

// Index of the first largest number; -1 if all are NaN, which is never equal to itself.
std::int64_t first_largest(const float* values, std::int64_t count) {
  std::int64_t best = -1;
  for (std::int64_t i = 0; i < count; ++i) {
    const bool is_number = values[i] == values[i];
    if (is_number && (best < 0 || values[i] > values[best])) best = i;
  }
  return best;
}

}  // namespace

std::unique_ptr<Operator> make_operator(const AccuracySpec& spec, const PrepareOptions& /*options*/,
                                        const dnnl::engine& engine) {
  const Shape& shape = spec.logits.shape();
  ARBALEST_CHECK(shape.rank() == 2 && spec.labels.shape() == Shape{shape[0]});
  ARBALEST_CHECK(spec.labels.dtype() == DType::kInt32);

  Program forward(engine);
  const Operand logits =
      forward.read_as({Role::kInput, descriptor(spec.logits)}, plain_descriptor(shape, DType::kFloat32));
  forward.add([logits, examples = shape[0], classes = shape[1]](const TaskContext&, const Addresses& addresses) {
    const auto* rows = logits.at<const float>(addresses);
    const auto* labels = static_cast<const std::int32_t*>(addresses[Role::kLabels]);
    std::int64_t correct = 0;
    for (std::int64_t n = 0; n < examples; ++n) {
      if (labels[n] != kNoLabel && first_largest(rows + n * classes, classes) == labels[n]) ++correct;
    }
    *static_cast<float*>(addresses[Role::kOutput]) = static_cast<float>(correct);
  });

  OperatorTraits traits;
  traits.output = make_layout(plain_descriptor({1}, DType::kFloat32));
  return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::nullopt);
}

}  // namespace arbalest::engine::cpu
