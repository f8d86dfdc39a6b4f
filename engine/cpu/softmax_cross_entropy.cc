#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/alignment.h"
#include "engine/cpu/layout.h"
#include "engine/cpu/operators.h"
#include "engine/cpu/parallel.h"
#include "engine/cpu/program.h"
#include "engine/elementwise/exponential.h"
#include "engine/error.h"

namespace arbalest::engine::cpu {

namespace {

struct Extents {
  std::int64_t examples;
  std::int64_t classes;
};

// Below this much work the threads' meeting costs more than the rows.
int threads_for(const TaskContext& context, const Extents& extents) {
  return extents.examples * extents.classes < 16384 ? 1 : context.threads;
}

void check_label(std::int32_t label, std::int64_t example, std::int64_t classes) {
  if (label < kNoLabel || label >= classes) {
    fail(ErrorKind::kData, "label {} of example {} in the mini-batch is not below the number of classes, {}", label,
         example, classes);
  }
}

// Writes exp(a - max a) to `exponentials` (null: nowhere) and returns {max a, sum of them}.
struct RowSum {
  float largest;
  float sum;
};
RowSum sum_exponentials(const float* logits, std::int64_t classes, float* exponentials) {
  float largest = -std::numeric_limits<float>::infinity();
  for (std::int64_t c = 0; c < classes; ++c) largest = std::max(largest, logits[c]);
  // Sixteen partial sums in fixed order: vectors without giving up reproducibility.
  constexpr std::int64_t kLanes = 16;
  float lanes[kLanes] = {};
  for (std::int64_t c = 0; c < classes; c += kLanes) {
    const std::int64_t count = std::min(kLanes, classes - c);
    float values[kLanes] = {};
    for (std::int64_t i = 0; i < count; ++i) values[i] = elementwise::exponential(logits[c + i] - largest);
    for (std::int64_t i = 0; i < count; ++i) lanes[i] += values[i];
    if (exponentials != nullptr) std::copy_n(values, count, exponentials + c);
  }
  float sum = 0.0F;
  for (const float lane : lanes) sum += lane;
  return {largest, sum};
}

// log(sum_c exp(a_c)) - a_y. NaN and infinite logits give NaN or infinity, never a harmless number.
double example_loss(const RowSum& row, float logit_of_label) {
  return std::log(static_cast<double>(row.sum)) +
         (static_cast<double>(row.largest) - static_cast<double>(logit_of_label));
}

Program make_forward(const dnnl::engine& engine, const SoftmaxCrossEntropySpec& spec, const PrepareOptions& options) {
  Program program(engine);
  const bool training = options.mode == OperatorMode::kTraining;
  const double weight = training ? static_cast<double>(spec.weight) : 1.0;
  const bool adds = options.adds_to_loss;
  const Extents extents{spec.logits.shape()[0], spec.logits.shape()[1]};
  const Operand logits =
      program.read_as({Role::kInput, descriptor(spec.logits)}, plain_descriptor(spec.logits.shape(), DType::kFloat32));
  // A loss per example, two words each: they are summed in order, whoever computed them.
  const Operand losses = program.scratch(plain_descriptor({2 * extents.examples}, DType::kFloat32));
  program.add([=](const TaskContext& context, const Addresses& addresses) {
    const auto* rows = logits.at<const float>(addresses);
    const auto* labels = static_cast<const std::int32_t*>(addresses[Role::kLabels]);
    auto* loss = losses.at<double>(addresses);
    auto* probabilities = training ? static_cast<float*>(addresses[Role::kSaved]) : nullptr;
    for (std::int64_t n = 0; n < extents.examples; ++n) check_label(labels[n], n, extents.classes);
    for_each_part(threads_for(context, extents), extents.examples, [&](std::int64_t n) {
      loss[n] = 0.0;
      if (labels[n] == kNoLabel) return;
      const float* row = rows + n * extents.classes;
      float* saved = probabilities == nullptr ? nullptr : probabilities + n * extents.classes;
      const RowSum sum = sum_exponentials(row, extents.classes, saved);
      loss[n] = example_loss(sum, row[labels[n]]);
      for (std::int64_t c = 0; saved != nullptr && c < extents.classes; ++c) saved[c] /= sum.sum;
    });
    double total = 0.0;
    for (std::int64_t n = 0; n < extents.examples; ++n) total += loss[n];
    auto* result = static_cast<float*>(addresses[Role::kOutput]);
    *result = static_cast<float>(weight * total) + (adds ? *result : 0.0F);
  });
  return program;
}

Program make_backward(const dnnl::engine& engine, const SoftmaxCrossEntropySpec& spec) {
  Program program(engine);
  const Extents extents{spec.logits.shape()[0], spec.logits.shape()[1]};
  const Operand target{Role::kInputGradient, descriptor(spec.logits)};
  const Operand gradient = program.write_as(target, plain_descriptor(spec.logits.shape(), DType::kFloat32));
  program.add([=, weight = spec.weight](const TaskContext& context, const Addresses& addresses) {
    const auto* probabilities = static_cast<const float*>(addresses[Role::kSaved]);
    const auto* labels = static_cast<const std::int32_t*>(addresses[Role::kLabels]);
    auto* gradients = gradient.at<float>(addresses);
    const std::int64_t unlabeled = std::count(labels, labels + extents.examples, kNoLabel);
    const auto labeled = static_cast<float>(extents.examples - unlabeled);
    for_each_part(threads_for(context, extents), extents.examples, [&](std::int64_t n) {
      const float* probability = probabilities + n * extents.classes;
      float* row = gradients + n * extents.classes;
      if (labels[n] == kNoLabel) {
        std::fill_n(row, extents.classes, 0.0F);
        return;
      }
      for (std::int64_t c = 0; c < extents.classes; ++c) row[c] = weight * (probability[c] / labeled);
      row[labels[n]] = weight * ((probability[labels[n]] - 1.0F) / labeled);
    });
  });
  program.deliver(gradient, target);
  return program;
}

}  // namespace

std::unique_ptr<Operator> make_operator(const SoftmaxCrossEntropySpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine) {
  const Shape& logits = spec.logits.shape();
  ARBALEST_CHECK(logits.rank() == 2 && spec.labels.shape() == Shape{logits[0]});
  ARBALEST_CHECK(spec.labels.dtype() == DType::kInt32);
  const bool training = options.mode == OperatorMode::kTraining;

  OperatorTraits traits;
  traits.output = make_layout(plain_descriptor({1}, DType::kFloat32));
  Program forward = make_forward(engine, spec, options);
  if (!training) return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::nullopt);

  traits.saved_bytes = aligned(static_cast<std::size_t>(logits.elements()) * sizeof(float));  // the probabilities
  Program backward(engine);
  if (options.input_gradient) backward = make_backward(engine, spec);
  return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::move(backward));
}

}  // namespace arbalest::engine::cpu
