#include <algorithm>
#include <cmath>

#include "engine/base/alignment.h"
#include "engine/base/error.h"
#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/onednn/program.h"
#include "engine/cpu/operators/operators.h"
#include "engine/cpu/operators/outputs/ranks.h"
#include "engine/cpu/operators/rows.h"
#include "engine/cpu/operators/softmax_rows.h"
#include "engine/cpu/runtime/parallel.h"

namespace arbalest::engine::cpu {

namespace {

struct Extents {
  std::int64_t examples;
  std::int64_t classes;
};

void check_label(std::int32_t label, std::int64_t example, std::int64_t classes) {
  if (label < kNoLabel || label >= classes) {
    fail(ErrorKind::kData, "label {} of example {} in the mini-batch is not below the number of classes, {}", label,
         example, classes);
  }
}

// log(sum_c exp(a_c)) - a_y. NaN and infinite logits give NaN or infinity, never a harmless number.
double example_loss(const RowSum& row, float logit_of_label) {
  return std::log(static_cast<double>(row.sum)) +
         (static_cast<double>(row.largest) - static_cast<double>(logit_of_label));
}

// Loss that smoothing adds: smoothing (a_y - mean_c a_c).
double smoothing_loss(const float* logits, std::int64_t classes, std::int32_t label, float smoothing) {
  double sum = 0.0;
  for (std::int64_t c = 0; c < classes; ++c) sum += static_cast<double>(logits[c]);
  return static_cast<double>(smoothing) * (static_cast<double>(logits[label]) - sum / static_cast<double>(classes));
}

Program make_forward(const dnnl::engine& engine, const SoftmaxCrossEntropySpec& spec, const PrepareOptions& options) {
  Program program(engine);
  const bool training = options.mode == OperatorMode::kTraining;
  const double weight = training ? static_cast<double>(spec.weight) : 1.0;
  const bool adds = options.adds_to_loss;
  const Extents extents{spec.logits.shape()[0], spec.logits.shape()[1]};
  const Operand logits =
      program.read_as({Role::kInput, descriptor(spec.logits)}, plain_descriptor(spec.logits.shape(), DType::kFloat32));
  // One loss per example, two words each: they are summed in order, whichever thread computed them.
  const Operand losses = program.scratch(plain_descriptor({2 * extents.examples}, DType::kFloat32));
  const float smoothing = training ? spec.label_smoothing : 0.0F;
  program.add([=, top = spec.top](const TaskContext& context, const Addresses& addresses) {
    const auto* rows = logits.at<const float>(addresses);
    const auto* labels = static_cast<const std::int32_t*>(addresses[Role::kLabels]);
    auto* loss = losses.at<double>(addresses);
    auto* probabilities = training ? static_cast<float*>(addresses[Role::kSaved]) : nullptr;
    for (std::int64_t n = 0; n < extents.examples; ++n) check_label(labels[n], n, extents.classes);
    for_each_part(threads_for_rows(context.threads, extents.examples, extents.classes), extents.examples,
                  [&](std::int64_t n) {
                    loss[n] = 0.0;
                    if (labels[n] == kNoLabel) return;
                    const float* row = rows + n * extents.classes;
                    float* saved = probabilities == nullptr ? nullptr : probabilities + n * extents.classes;
                    const RowSum sum = sum_exponentials(row, extents.classes, saved);
                    loss[n] = example_loss(sum, row[labels[n]]);
                    if (smoothing > 0.0F) loss[n] += smoothing_loss(row, extents.classes, labels[n], smoothing);
                    for (std::int64_t c = 0; saved != nullptr && c < extents.classes; ++c) saved[c] /= sum.sum;
                  });
    double total = 0.0;
    for (std::int64_t n = 0; n < extents.examples; ++n) total += loss[n];
    auto* result = static_cast<float*>(addresses[Role::kOutput]);
    *result = static_cast<float>(weight * total) + (adds ? *result : 0.0F);
    if (top.empty()) return;
    count_ranks(rows, {labels, static_cast<std::size_t>(extents.examples)}, extents.classes, top, result + 1);
  });
  return program;
}

Program make_backward(const dnnl::engine& engine, const SoftmaxCrossEntropySpec& spec) {
  Program program(engine);
  const Extents extents{spec.logits.shape()[0], spec.logits.shape()[1]};
  const Operand target{Role::kInputGradient, descriptor(spec.logits)};
  const Operand gradient = program.write_as(target, plain_descriptor(spec.logits.shape(), DType::kFloat32));
  const float of_others = target_of_others(spec);
  const float of_label = of_others + (1.0F - spec.label_smoothing);
  program.add([=, weight = spec.weight](const TaskContext& context, const Addresses& addresses) {
    const auto* probabilities = static_cast<const float*>(addresses[Role::kSaved]);
    const auto* labels = static_cast<const std::int32_t*>(addresses[Role::kLabels]);
    auto* gradients = gradient.at<float>(addresses);
    const std::int64_t unlabeled = std::count(labels, labels + extents.examples, kNoLabel);
    const auto labeled = static_cast<float>(extents.examples - unlabeled);
    for_each_part(threads_for_rows(context.threads, extents.examples, extents.classes), extents.examples,
                  [&](std::int64_t n) {
                    const float* probability = probabilities + n * extents.classes;
                    float* row = gradients + n * extents.classes;
                    if (labels[n] == kNoLabel) {
                      std::fill_n(row, extents.classes, 0.0F);
                      return;
                    }
                    for (std::int64_t c = 0; c < extents.classes; ++c)
                      row[c] = weight * ((probability[c] - of_others) / labeled);
                    row[labels[n]] = weight * ((probability[labels[n]] - of_label) / labeled);
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
  ARBALEST_CHECK(spec.top.size() <= kMaxRankCounts);
  const bool training = options.mode == OperatorMode::kTraining;

  OperatorTraits traits;
  traits.output = make_layout(plain_descriptor({1 + static_cast<std::int64_t>(spec.top.size())}, DType::kFloat32));
  Program forward = make_forward(engine, spec, options);
  if (!training) return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::nullopt);

  traits.saved_bytes = aligned(static_cast<std::size_t>(logits.elements()) * sizeof(float));  // holds the probabilities
  Program backward(engine);
  if (options.input_gradient) backward = make_backward(engine, spec);
  return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::move(backward));
}

}  // namespace arbalest::engine::cpu
