// oneDNN has kernels for a few sizes and channel counts only (2.6: size 5 and beta 0.75 on whole blocks of channels),
// so these loops are our own. They work in canonical order: vectors hold neighboring pixels of a channel.
#include <algorithm>

#include "engine/base/error.h"
#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/onednn/program.h"
#include "engine/cpu/operators/operators.h"
#include "engine/cpu/runtime/elements.h"
#include "engine/cpu/runtime/parallel.h"
#include "engine/elementwise/local_response.h"

namespace arbalest::engine::cpu {

namespace {

using elementwise::load;
using elementwise::store;

constexpr std::int64_t kPixels = 64;  // pixels worked on at a time, through all channels

struct Norm {
  std::int64_t images;
  std::int64_t channels;
  std::int64_t pixels;  // per image
  elementwise::LocalResponse response;
};

// Some neighboring pixels of an image.
struct Span {
  std::int64_t first;
  std::int64_t count;
};

// Calls body(part, span) for every span of every image; the spans of a part run on one thread.
template <typename Body>
void for_each_span(const Norm& norm, int threads, std::int64_t parts, const Body& body) {
  const std::int64_t spans = (norm.pixels + kPixels - 1) / kPixels;
  const std::int64_t all = norm.images * spans;
  for_each_part(threads, parts, [&](std::int64_t part) {
    for (std::int64_t i = all * part / parts; i < all * (part + 1) / parts; ++i) {
      const std::int64_t pixel = i % spans * kPixels;
      body(part, Span{i / spans * norm.channels * norm.pixels + pixel, std::min(kPixels, norm.pixels - pixel)});
    }
  });
}

// sums[p] = sum over the channels j around c of term(j, p).
template <typename Term>
void sum_neighbors(const Norm& norm, std::int64_t c, std::int64_t count, const Term& term, float* sums) {
  std::fill_n(sums, count, 0.0F);
  const std::int64_t begin = std::max<std::int64_t>(c - norm.response.reach, 0);
  const std::int64_t end = std::min(c + norm.response.reach + 1, norm.channels);
  for (std::int64_t j = begin; j < end; ++j) {
    for (std::int64_t p = 0; p < count; ++p) sums[p] += term(j, p);
  }
}

// Computes s for the pixels of channel c.
template <typename T>
void scales_of(const Norm& norm, const T* input, const Span& span, std::int64_t c, float* scales) {
  const auto square = [&](std::int64_t j, std::int64_t p) {
    const float x = load(input[span.first + j * norm.pixels + p]);
    return x * x;
  };
  sum_neighbors(norm, c, span.count, square, scales);
  for (std::int64_t p = 0; p < span.count; ++p) scales[p] = elementwise::response_scale(norm.response, scales[p]);
}

template <typename T>
void normalize(const Norm& norm, const T* input, const Span& span, T* output) {
  float scales[kPixels];
  for (std::int64_t c = 0; c < norm.channels; ++c) {
    scales_of(norm, input, span, c, scales);
    const std::int64_t at = span.first + c * norm.pixels;
    for (std::int64_t p = 0; p < span.count; ++p) {
      store(load(input[at + p]) * elementwise::response_factor(norm.response, scales[p]), output[at + p]);
    }
  }
}

// `input_gradient` may be `output_gradient`.
//  ratios, factors: [channels, kPixels], working memory
template <typename T>
void differentiate(const Norm& norm, const T* input, const T* output_gradient, const Span& span, float* ratios,
                   float* factors, T* input_gradient) {
  float scales[kPixels];
  for (std::int64_t c = 0; c < norm.channels; ++c) {
    scales_of(norm, input, span, c, scales);
    const std::int64_t at = span.first + c * norm.pixels;
    for (std::int64_t p = 0; p < span.count; ++p) {
      const float factor = elementwise::response_factor(norm.response, scales[p]);
      factors[c * kPixels + p] = factor;
      ratios[c * kPixels + p] = load(output_gradient[at + p]) * load(input[at + p]) * factor / scales[p];
    }
  }
  float sums[kPixels];
  for (std::int64_t c = 0; c < norm.channels; ++c) {
    sum_neighbors(
        norm, c, span.count, [&](std::int64_t j, std::int64_t p) { return ratios[j * kPixels + p]; }, sums);
    const std::int64_t at = span.first + c * norm.pixels;
    for (std::int64_t p = 0; p < span.count; ++p) {
      const float gradient = elementwise::response_gradient(
          norm.response, load(input[at + p]), load(output_gradient[at + p]), factors[c * kPixels + p], sums[p]);
      store(gradient, input_gradient[at + p]);
    }
  }
}

Program make_backward(const dnnl::engine& engine, const LocalResponseNormSpec& spec, const Norm& norm,
                      std::int64_t parts) {
  Program program(engine);
  const dnnl::memory::desc tensor = descriptor(spec.input);
  const dnnl::memory::desc plain = plain_descriptor(spec.input.shape(), spec.input.dtype());
  const Operand input = program.read_as({Role::kInput, tensor}, plain);
  const Operand arriving = program.read_as({Role::kOutputGradient, tensor}, plain);
  const Operand target{Role::kInputGradient, tensor};
  const Operand leaving = program.write_as(target, plain);
  const std::int64_t of_part = norm.channels * kPixels;
  const Operand ratios = program.scratch(plain_descriptor({parts * of_part}, DType::kFloat32));
  const Operand factors = program.scratch(plain_descriptor({parts * of_part}, DType::kFloat32));
  with_elements(spec.input.dtype(), [&]<typename T>(ElementKind<T>) {
    program.add([=](const TaskContext& context, const Addresses& addresses) {
      for_each_span(norm, context.threads, parts, [&](std::int64_t part, const Span& span) {
        differentiate(norm, input.at<const T>(addresses), arriving.at<const T>(addresses), span,
                      ratios.at<float>(addresses) + part * of_part, factors.at<float>(addresses) + part * of_part,
                      leaving.at<T>(addresses));
      });
    });
  });
  program.deliver(leaving, target);
  return program;
}

}  // namespace

std::unique_ptr<Operator> make_operator(const LocalResponseNormSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine) {
  const Shape& shape = spec.input.shape();
  ARBALEST_CHECK(shape.rank() == 4 && spec.size % 2 == 1 && spec.k > 0.0F);
  const Norm norm{
      shape[0],
      shape[1],
      shape[2] * shape[3],
      {static_cast<std::int32_t>(spec.size / 2), spec.alpha / static_cast<float>(spec.size), spec.beta, spec.k}};
  const std::int64_t parts = options.threads;
  const dnnl::memory::desc tensor = descriptor(spec.input);
  const dnnl::memory::desc plain = plain_descriptor(shape, spec.input.dtype());

  Program forward(engine);
  const Operand input = forward.read_as({Role::kInput, tensor}, plain);
  const Operand target{Role::kOutput, tensor};
  const Operand output = forward.write_as(target, plain);
  with_elements(spec.input.dtype(), [&]<typename T>(ElementKind<T>) {
    forward.add([=](const TaskContext& context, const Addresses& addresses) {
      for_each_span(norm, context.threads, parts, [&](std::int64_t, const Span& span) {
        normalize(norm, input.at<const T>(addresses), span, output.at<T>(addresses));
      });
    });
  });
  forward.deliver(output, target);
  OperatorTraits traits;
  traits.output = spec.input;
  if (options.mode == OperatorMode::kInference) {
    return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::nullopt);
  }

  traits.backward_reads_inputs = true;
  traits.in_place_backward = true;
  Program backward(engine);
  if (options.input_gradient) backward = make_backward(engine, spec, norm, parts);
  return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::move(backward));
}

}  // namespace arbalest::engine::cpu
