#include "engine/cpu/operators/prediction_conv2d.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/alignment.h"
#include "engine/cpu/device/parallel.h"
#include "engine/cpu/onednn/kernel_choice.h"
#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/onednn/program.h"
#include "engine/cpu/operators/activation.h"
#include "engine/cpu/operators/add.h"
#include "engine/cpu/operators/convolution_descriptions.h"
#include "engine/cpu/operators/reversed_weights.h"
#include "engine/cpu/winograd/blocked_convolution.h"

namespace arbalest::engine::cpu {

namespace {

using Forward = dnnl::convolution_forward::primitive_desc;

constexpr std::int64_t kBlock = 16;  // channels side by side

// Winograd's minimal filtering (convolution_kernels.cc), with weights that are transformed beforehand.
bool prefers_winograd(const LinearTensors& of, const Window& window) {
  const dnnl::memory::dims weights = of.weights.dims();
  const Extent2d three{3, 3}, one{1, 1};
  if (weights.size() != 4 || window.kernel != three || window.stride != one || window.dilation != one) return false;
  const dnnl::memory::dims output = of.output.dims();
  const std::int64_t channels = std::min(weights[0], weights[1]);
  return channels >= 32 && output[0] * output[2] * output[3] >= (channels < 64 ? 4096 : 1024);
}

struct Choice {
  Forward kernel;
  bool applies_rest = false;  // whether the kernel adds the addend and applies the activation
};

// The sum and the activation behind a kernel whose result has the layout `output`.
dnnl::primitive_attr rest_of(const Conv2dSpec& spec, const dnnl::memory::desc& output) {
  dnnl::primitive_attr attributes = spec.activation.has_value() ? followed_by(*spec.activation) : user_scratchpad();
  if (!spec.addend.has_value()) return attributes;
  dnnl::post_ops operations;
  operations.append_binary(dnnl::algorithm::binary_add, output);
  if (spec.activation.has_value()) operations.append_eltwise(1.0F, algorithm_of(spec.activation->kind), 0.0F, 0.0F);
  attributes.set_post_ops(operations);
  return attributes;
}

// The given kernel with the rest in it, or without if it cannot apply that.
Choice with_rest(const Conv2dSpec& spec, const Forward& bare, const dnnl::convolution_forward::desc& description,
                 const dnnl::engine& engine) {
  if (!spec.activation.has_value() && !spec.addend.has_value()) return {bare, true};
  const auto both = kernel_or_none(Forward(description, rest_of(spec, bare.dst_desc()), engine, true));
  const bool is_same = both.has_value() && std::string_view(both->impl_info_str()) == bare.impl_info_str();
  return is_same && can_be_made(*both) ? Choice{*both, true} : Choice{bare};
}

// `bare`: the direct kernel, which determines the layouts of the images.
Choice choose(const Conv2dSpec& spec, const Forward& bare, const LinearTensors& of, const Slides& by,
              const dnnl::engine& engine) {
  LinearTensors same{bare.src_desc(), bare.weights_desc(), of.bias, bare.dst_desc()};
  if (prefers_winograd(of, spec.window)) {
    const LinearTensors transformed{same.input, of.weights, of.bias, same.output};
    const auto description =
        forward_desc(dnnl::algorithm::convolution_winograd, OperatorMode::kInference, transformed, by);
    if (const auto kernel = kernel_or_none(Forward(description, user_scratchpad(), engine, true))) {
      return with_rest(spec, *kernel, description, engine);
    }
  }
  const auto description = forward_desc(dnnl::algorithm::convolution_direct, OperatorMode::kInference, same, by);
  return with_rest(spec, bare, description, engine);
}

// output = relu(output + bias + addend), for pixels of kBlock channels. bias, addend: null if there is none.
void finish(int threads, std::int64_t pixels, const float* bias, const float* addend, bool relu, float* output) {
  for_ranges(threads, pixels, [=](std::int64_t begin, std::int64_t end) {
    float offset[kBlock] = {};
    if (bias != nullptr) std::copy_n(bias, kBlock, offset);
    const float least = relu ? 0.0F : -std::numeric_limits<float>::infinity();
    for (std::int64_t pixel = begin; pixel < end; ++pixel) {
      float* const at = output + pixel * kBlock;
      const float* const added = addend == nullptr ? nullptr : addend + pixel * kBlock;
#pragma omp simd
      for (std::int64_t c = 0; c < kBlock; ++c) {
        const float sum = at[c] + offset[c] + (added == nullptr ? 0.0F : added[c]);
        at[c] = sum < least ? least : sum;  // NaN stays NaN
      }
    }
  });
}

class Builder {
 public:
  Builder(const Conv2dSpec& spec, int threads, const dnnl::engine& engine)
      : spec_(spec), threads_(threads), engine_(engine), forward_(engine), preparation_(engine) {}

  std::unique_ptr<Operator> build(const LinearTensors& of) {
    const Slides by(spec_.window);
    const Forward bare =
        require_kernel(Forward(forward_desc(dnnl::algorithm::convolution_direct, OperatorMode::kInference, of, by),
                               user_scratchpad(), engine_),
                       "convolution");
    traits_.output = make_layout(bare.dst_desc());
    traits_.parameters.push_back(make_layout(bare.weights_desc(), weights_shape(spec_)));
    if (spec_.bias) traits_.parameters.push_back(make_layout(of.bias));
    given_ = {Role::kWeights, bare.weights_desc()};
    output_ = {Role::kOutput, bare.dst_desc()};
    input_ = forward_.read_as({Role::kInput, descriptor(spec_.input)}, bare.src_desc());
    if (spec_.addend) addend_ = forward_.read_as({input_role(1), descriptor(*spec_.addend)}, bare.dst_desc());
    if (BlockedWinograd::fits(spec_) && is_blocked(bare)) {
      add_winograd();
      return finished();
    }
    const auto turned =
        can_finish(bare) && is_faster_reversed(of, spec_.window) ? reversed(engine_, bare, of, by) : std::nullopt;
    if (turned) {
      add_reversed(*turned);
    } else {
      add(choose(spec_, bare, of, by, engine_));
    }
    return finished();
  }

 private:
  std::unique_ptr<Operator> finished() {
    const bool is_prepared = traits_.prepared_bytes > 0;
    return std::make_unique<ProgramOperator>(std::move(traits_), std::move(forward_), std::nullopt,
                                             is_prepared ? std::optional(std::move(preparation_)) : std::nullopt);
  }

  bool is_blocked(const Forward& bare) const {
    const auto in_blocks = [](const dnnl::memory::desc& images) {
      return images ==
             dnnl::memory::desc(images.dims(), dnnl::memory::data_type::f32, dnnl::memory::format_tag::aBcd16b);
    };
    return in_blocks(bare.src_desc()) && in_blocks(bare.dst_desc()) &&
           spec_.activation.value_or(ActivationKind::kRelu) == ActivationKind::kRelu;
  }

  void add_winograd() {
    const BlockedWinograd winograd(spec_, threads_);
    const Operand weights = preparation_.read_as(given_, plain_descriptor(weights_shape(spec_), DType::kFloat32));
    const Operand prepared{Role::kPrepared, plain_descriptor({winograd.prepared()}, DType::kFloat32)};
    traits_.prepared_bytes = aligned(prepared.descriptor.get_size());
    const bool has_bias = spec_.bias;
    preparation_.add([=](const TaskContext&, const Addresses& addresses) {
      const Operand bias{Role::kBias, {}};
      winograd.prepare(weights.at<const float>(addresses), has_bias ? bias.at<const float>(addresses) : nullptr,
                       prepared.at<float>(addresses));
    });
    const Operand scratch = forward_.scratch(plain_descriptor({winograd.scratch()}, DType::kFloat32));
    forward_.add([=, relu = spec_.activation.has_value(), addend = addend_, input = input_, output = output_](
                     const TaskContext& context, const Addresses& addresses) {
      winograd.run(context.threads, {.input = input.at<const float>(addresses),
                                     .prepared = prepared.at<const float>(addresses),
                                     .addend = addend ? addend->at<const float>(addresses) : nullptr,
                                     .relu = relu,
                                     .scratch = scratch.at<float>(addresses),
                                     .output = output.at<float>(addresses)});
    });
  }

  bool can_finish(const Forward& bare) const {
    const dnnl::memory::desc output = bare.dst_desc();
    return output ==
               dnnl::memory::desc(output.dims(), dnnl::memory::data_type::f32, dnnl::memory::format_tag::aBcd16b) &&
           spec_.filters == kBlock && spec_.activation.value_or(ActivationKind::kRelu) == ActivationKind::kRelu;
  }

  void add_reversed(const dnnl::primitive_desc_base& kernel) {
    const Operand weights = kept(reverse_weights(preparation_, given_, kernel.weights_desc()), kernel.weights_desc());
    forward_.add(kernel, {{DNNL_ARG_DIFF_DST, input_}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DIFF_SRC, output_}});
    const bool relu = spec_.activation.has_value();
    if (!spec_.bias && !addend_ && !relu) return;
    const std::int64_t pixels = elements_of(output_.descriptor) / kBlock;
    forward_.add([=, has_bias = spec_.bias, addend = addend_, output = output_](const TaskContext& context,
                                                                                const Addresses& addresses) {
      const float* bias = has_bias ? static_cast<const float*>(addresses[Role::kBias]) : nullptr;
      finish(context.threads, pixels, bias, addend ? addend->at<const float>(addresses) : nullptr, relu,
             output.at<float>(addresses));
    });
  }

  void add(const Choice& choice) {
    Program::Arguments arguments{{DNNL_ARG_SRC, input_},
                                 {DNNL_ARG_WEIGHTS, kept(given_, choice.kernel.weights_desc())},
                                 {DNNL_ARG_DST, output_}};
    if (spec_.bias) arguments.push_back({DNNL_ARG_BIAS, {Role::kBias, choice.kernel.bias_desc()}});
    if (choice.applies_rest && addend_) {
      arguments.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, *addend_});
    }
    forward_.add(choice.kernel, std::move(arguments));
    if (choice.applies_rest) return;
    if (addend_) {
      add_sum(forward_, output_, *addend_, spec_.activation.has_value(), output_);
    } else {
      ActivationSteps(engine_, OperatorMode::kInference, traits_.output, *spec_.activation)
          .forward(forward_, output_, output_);
    }
  }

  // Weights in the layout that a kernel wants: the parameter itself, or a copy that is made once.
  Operand kept(const Operand& weights, const dnnl::memory::desc& wanted) {
    if (weights.role == Role::kWeights && weights.descriptor == wanted) return weights;
    const Operand copy{Role::kPrepared, wanted};
    preparation_.reorder(weights, copy);
    traits_.prepared_bytes = aligned(wanted.get_size());
    return copy;
  }

  const Conv2dSpec& spec_;
  const int threads_;
  const dnnl::engine& engine_;
  Program forward_;
  Program preparation_;
  OperatorTraits traits_;
  Operand given_, input_, output_;
  std::optional<Operand> addend_;
};

}  // namespace

std::unique_ptr<Operator> make_prediction_conv2d(const Conv2dSpec& spec, const PrepareOptions& options,
                                                 const dnnl::engine& engine) {
  ARBALEST_CHECK(options.precision == Precision::kFloat32 && options.parameters.empty());
  ARBALEST_CHECK(!spec.addend || spec.activation.value_or(ActivationKind::kRelu) == ActivationKind::kRelu);
  const Shape& input = spec.input.shape();
  dnnl::memory::dims weights = dims(weights_shape(spec));
  if (spec.groups > 1) {
    weights[0] /= spec.groups;
    weights.insert(weights.begin(), spec.groups);
  }
  const auto any = [](const dnnl::memory::dims& extents) { return any_layout(extents, DType::kFloat32); };
  LinearTensors tensors{
      any(dims(input)), any(weights), {}, any(dims(window_output_shape(input, spec.window, spec.filters)))};
  if (spec.bias) tensors.bias = plain_descriptor({spec.filters}, DType::kFloat32);
  return Builder(spec, options.threads, engine).build(tensors);
}

}  // namespace arbalest::engine::cpu
