// Our own loops, in canonical order: the gradients of the slopes do not depend on the number of threads.
#include "engine/ops/prelu.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/onednn/program.h"
#include "engine/cpu/operators/operators.h"
#include "engine/cpu/operators/rows.h"
#include "engine/cpu/runtime/elements.h"
#include "engine/cpu/runtime/parallel.h"
#include "engine/elementwise/prelu.h"

namespace arbalest::engine::cpu {

namespace {

using elementwise::load;
using elementwise::store;

struct Channels {
  std::int64_t examples;
  std::int64_t count;   // channels
  std::int64_t pixels;  // per channel of an example; 1 for features

  std::int64_t start(std::int64_t example, std::int64_t channel) const { return (example * count + channel) * pixels; }
  int threads(const TaskContext& context) const { return threads_for_rows(context.threads, examples, count * pixels); }
};

// One example. `y` may be `x`.
template <typename T>
void apply_slopes(const Channels& channels, const T* x, const float* slopes, T* y) {
  for (std::int64_t c = 0; c < channels.count; ++c, x += channels.pixels, y += channels.pixels) {
    for (std::int64_t p = 0; p < channels.pixels; ++p) store(elementwise::prelu(load(x[p]), slopes[c]), y[p]);
  }
}

// The features of one example.
template <typename T>
void apply_slopes_to_features(std::int64_t count, const T* x, const float* slopes, T* y) {
  for (std::int64_t c = 0; c < count; ++c) store(elementwise::prelu(load(x[c]), slopes[c]), y[c]);
}

// One channel of all examples. Returns the gradient of its slope. `dx` may be `dy`, or null if it is not wanted.
template <typename T>
float differentiate_channel(const Channels& channels, std::int64_t c, const T* x, const T* dy, float slope, T* dx) {
  double lanes[kSumLanes] = {};
  for (std::int64_t n = 0; n < channels.examples; ++n) {
    const std::int64_t start = channels.start(n, c);
    for (std::int64_t p = 0; p < channels.pixels; ++p) {
      const float arriving = load(dy[start + p]);
      const float value = load(x[start + p]);
      lanes[p % kSumLanes] += static_cast<double>(elementwise::prelu_slope_term(value, arriving));
      if (dx != nullptr) store(elementwise::prelu_gradient(value, slope, arriving), dx[start + p]);
    }
  }
  double sum = 0.0;
  for (const double lane : lanes) sum += lane;
  return static_cast<float>(sum);
}

// The features [begin, end) of all examples, which are added one after the other.
template <typename T>
void differentiate_features(const Channels& channels, std::int64_t begin, std::int64_t end, const T* x, const T* dy,
                            const float* slopes, T* dx, float* slope_gradients) {
  std::fill(slope_gradients + begin, slope_gradients + end, 0.0F);
  for (std::int64_t n = 0; n < channels.examples; ++n) {
    const std::int64_t start = channels.start(n, 0);
    for (std::int64_t c = begin; c < end; ++c) {
      const float arriving = load(dy[start + c]);
      const float value = load(x[start + c]);
      slope_gradients[c] += elementwise::prelu_slope_term(value, arriving);
      if (dx != nullptr) store(elementwise::prelu_gradient(value, slopes[c], arriving), dx[start + c]);
    }
  }
}

Program make_forward(const PReluSpec& spec, const Channels& channels, const dnnl::engine& engine) {
  Program program(engine);
  const dnnl::memory::desc plain = plain_descriptor(spec.input.shape(), spec.input.dtype());
  const Operand input = program.read_as({Role::kInput, descriptor(spec.input)}, plain);
  const Operand target{Role::kOutput, descriptor(spec.input)};
  const Operand output = program.write_as(target, plain);
  with_elements(spec.input.dtype(), [&]<typename T>(ElementKind<T>) {
    program.add([=](const TaskContext& context, const Addresses& addresses) {
      const auto* slopes = static_cast<const float*>(addresses[Role::kWeights]);
      for_each_part(channels.threads(context), channels.examples, [&](std::int64_t n) {
        const T* x = input.at<const T>(addresses) + channels.start(n, 0);
        T* y = output.at<T>(addresses) + channels.start(n, 0);
        if (channels.pixels == 1) {
          apply_slopes_to_features(channels.count, x, slopes, y);
        } else {
          apply_slopes(channels, x, slopes, y);
        }
      });
    });
  });
  program.deliver(output, target);
  return program;
}

Program make_backward(const PReluSpec& spec, const Channels& channels, bool input_gradient,
                      const dnnl::engine& engine) {
  Program program(engine);
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
      T* dx = input_gradient ? leaving.at<T>(addresses) : nullptr;
      const auto* slopes = static_cast<const float*>(addresses[Role::kWeights]);
      auto* slope_gradients = static_cast<float*>(addresses[Role::kWeightsGradient]);
      const int threads = channels.threads(context);
      if (channels.pixels == 1) {
        for_ranges(threads, channels.count, [&](std::int64_t begin, std::int64_t end) {
          differentiate_features(channels, begin, end, x, dy, slopes, dx, slope_gradients);
        });
        return;
      }
      for_each_part(threads, channels.count, [&](std::int64_t c) {
        slope_gradients[c] = differentiate_channel(channels, c, x, dy, slopes[c], dx);
      });
    });
  });
  if (input_gradient) program.deliver(leaving, target);
  return program;
}

}  // namespace

std::unique_ptr<Operator> make_operator(const PReluSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine) {
  const Shape& shape = spec.input.shape();
  ARBALEST_CHECK(shape.rank() == 2 || shape.rank() == 4);
  const bool training = options.mode == OperatorMode::kTraining;
  const Channels channels{shape[0], shape[1], shape.rank() == 4 ? shape[2] * shape[3] : 1};
  OperatorTraits traits;
  traits.output = spec.input;
  traits.parameters = {make_layout(plain_descriptor({channels.count}, DType::kFloat32))};
  traits.in_place_forward = !training;
  Program forward = make_forward(spec, channels, engine);
  if (!training) return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::nullopt);
  traits.backward_reads_inputs = true;
  traits.in_place_backward = true;
  return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward),
                                           make_backward(spec, channels, options.wants_gradient(0), engine));
}

}  // namespace arbalest::engine::cpu
