// Our own loops, in canonical order: the statistics stay precise far from zero, and the gradients of the parameters do
// not depend on the number of threads. A row is one example.
#include "engine/ops/layer_norm.h"

#include <algorithm>
#include <cmath>

#include "engine/base/alignment.h"
#include "engine/base/error.h"
#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/onednn/program.h"
#include "engine/cpu/operators/operators.h"
#include "engine/cpu/operators/rows.h"
#include "engine/cpu/runtime/elements.h"
#include "engine/cpu/runtime/parallel.h"

namespace arbalest::engine::cpu {

namespace {

using elementwise::load;
using elementwise::store;

struct Rows {
  std::int64_t count;
  std::int64_t features;
  float epsilon;
  bool affine;

  int threads(const TaskContext& context) const { return threads_for_rows(context.threads, count, features); }
};

// x - m is (x - first) - distance.
struct Statistics {
  float distance;  // of the mean from the row's first number
  float inverse;   // 1 / sqrt(variance + epsilon)
};

// Returns the sum of term(f) over the features, in an order that depends on their number only.
template <typename Term>
double sum_of(std::int64_t features, const Term& term) {
  double lanes[kSumLanes] = {};
  std::int64_t f = 0;
  for (; f + kSumLanes <= features; f += kSumLanes) {
    for (std::int64_t lane = 0; lane < kSumLanes; ++lane) lanes[lane] += static_cast<double>(term(f + lane));
  }
  double sum = 0.0;
  for (; f < features; ++f) sum += static_cast<double>(term(f));
  for (const double lane : lanes) sum += lane;
  return sum;
}

template <typename T>
Statistics measure(const Rows& rows, const T* x) {
  const float first = load(x[0]);
  const auto count = static_cast<double>(rows.features);
  const auto distance =
      static_cast<float>(sum_of(rows.features, [&](std::int64_t f) { return load(x[f]) - first; }) / count);
  const double squares = sum_of(rows.features, [&](std::int64_t f) {
    const float difference = load(x[f]) - first - distance;
    return difference * difference;
  });
  return {distance, static_cast<float>(1.0 / std::sqrt(squares / count + static_cast<double>(rows.epsilon)))};
}

// (x - m) / sqrt(v + epsilon) of feature f.
template <typename T>
float normalized(const Statistics& of, const T* x, float first, std::int64_t f) {
  return (load(x[f]) - first - of.distance) * of.inverse;
}

// `y` may be `x`.
template <typename T>
void normalize(const Rows& rows, const Statistics& of, const T* x, const float* scale, const float* shift, T* y) {
  const float first = load(x[0]);
  for (std::int64_t f = 0; f < rows.features; ++f) {
    const float z = normalized(of, x, first, f);
    store(rows.affine ? scale[f] * z + shift[f] : z, y[f]);
  }
}

// `dx` may be `dy`.
template <typename T>
void differentiate(const Rows& rows, const Statistics& of, const T* x, const float* scale, const T* dy, T* dx) {
  const float first = load(x[0]);
  const auto gradient = [&](std::int64_t f) { return rows.affine ? load(dy[f]) * scale[f] : load(dy[f]); };
  const auto count = static_cast<double>(rows.features);
  const auto mean = static_cast<float>(sum_of(rows.features, gradient) / count);
  const auto product = static_cast<float>(
      sum_of(rows.features, [&](std::int64_t f) { return gradient(f) * normalized(of, x, first, f); }) / count);
  for (std::int64_t f = 0; f < rows.features; ++f) {
    store((gradient(f) - mean - normalized(of, x, first, f) * product) * of.inverse, dx[f]);
  }
}

// Adds the rows one after the other for the features [begin, end), whatever thread has them.
template <typename T>
void sum_gradients(const Rows& rows, const Statistics* statistics, const T* x, const T* dy, std::int64_t begin,
                   std::int64_t end, float* scale_gradient, float* shift_gradient) {
  std::fill(scale_gradient + begin, scale_gradient + end, 0.0F);
  std::fill(shift_gradient + begin, shift_gradient + end, 0.0F);
  for (std::int64_t n = 0; n < rows.count; ++n, x += rows.features, dy += rows.features) {
    const float first = load(x[0]);
    for (std::int64_t f = begin; f < end; ++f) {
      const float arriving = load(dy[f]);
      scale_gradient[f] += arriving * normalized(statistics[n], x, first, f);
      shift_gradient[f] += arriving;
    }
  }
}

Program make_forward(const LayerNormSpec& spec, const Rows& rows, bool saves, const dnnl::engine& engine) {
  Program program(engine);
  const dnnl::memory::desc plain = plain_descriptor(spec.input.shape(), spec.input.dtype());
  const Operand input = program.read_as({Role::kInput, descriptor(spec.input)}, plain);
  const Operand target{Role::kOutput, descriptor(spec.input)};
  const Operand output = program.write_as(target, plain);
  with_elements(spec.input.dtype(), [&]<typename T>(ElementKind<T>) {
    program.add([=](const TaskContext& context, const Addresses& addresses) {
      const auto* scale = static_cast<const float*>(addresses[Role::kWeights]);
      const auto* shift = static_cast<const float*>(addresses[Role::kBias]);
      auto* saved = static_cast<Statistics*>(addresses[Role::kSaved]);
      for_each_part(rows.threads(context), rows.count, [&](std::int64_t n) {
        const T* x = input.at<const T>(addresses) + n * rows.features;
        const Statistics statistics = measure(rows, x);
        if (saves) saved[n] = statistics;
        normalize(rows, statistics, x, scale, shift, output.at<T>(addresses) + n * rows.features);
      });
    });
  });
  program.deliver(output, target);
  return program;
}

Program make_backward(const LayerNormSpec& spec, const Rows& rows, bool input_gradient, const dnnl::engine& engine) {
  Program program(engine);
  if (!input_gradient && !rows.affine) return program;
  const dnnl::memory::desc tensor = descriptor(spec.input);
  const dnnl::memory::desc plain = plain_descriptor(spec.input.shape(), spec.input.dtype());
  const Operand input = program.read_as({Role::kInput, tensor}, plain);
  const Operand arriving = program.read_as({Role::kOutputGradient, tensor}, plain);
  const Operand target{Role::kInputGradient, tensor};
  const Operand leaving = input_gradient ? program.write_as(target, plain) : target;
  with_elements(spec.input.dtype(), [&]<typename T>(ElementKind<T>) {
    program.add([=](const TaskContext& context, const Addresses& addresses) {
      const auto* x = input.at<const T>(addresses);
      const auto* dy = arriving.at<const T>(addresses);
      const auto* scale = static_cast<const float*>(addresses[Role::kWeights]);
      const auto* saved = static_cast<const Statistics*>(addresses[Role::kSaved]);
      const int threads = rows.threads(context);
      if (rows.affine) {  // first, because the gradient of the input may be written over that of the output
        for_ranges(threads, rows.features, [&](std::int64_t begin, std::int64_t end) {
          sum_gradients(rows, saved, x, dy, begin, end, static_cast<float*>(addresses[Role::kWeightsGradient]),
                        static_cast<float*>(addresses[Role::kBiasGradient]));
        });
      }
      if (!input_gradient) return;
      for_each_part(threads, rows.count, [&](std::int64_t n) {
        const std::int64_t at = n * rows.features;
        differentiate(rows, saved[n], x + at, scale, dy + at, leaving.at<T>(addresses) + at);
      });
    });
  });
  if (input_gradient) program.deliver(leaving, target);
  return program;
}

}  // namespace

std::unique_ptr<Operator> make_operator(const LayerNormSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine) {
  const Shape& shape = spec.input.shape();
  ARBALEST_CHECK((shape.rank() == 2 || shape.rank() == 4) && spec.epsilon > 0.0F);
  const bool training = options.mode == OperatorMode::kTraining;
  const Rows rows{shape[0], shape.elements_per_example(), spec.epsilon, spec.affine};
  OperatorTraits traits;
  traits.output = spec.input;
  if (spec.affine) traits.parameters.assign(2, make_layout(plain_descriptor(example_shape(shape), DType::kFloat32)));
  traits.in_place_forward = !training;
  Program forward = make_forward(spec, rows, training, engine);
  if (!training) return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::nullopt);
  traits.backward_reads_inputs = true;
  traits.in_place_backward = true;
  traits.saved_bytes = aligned(static_cast<std::size_t>(rows.count) * sizeof(Statistics));
  return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward),
                                           make_backward(spec, rows, options.wants_gradient(0), engine));
}

}  // namespace arbalest::engine::cpu
