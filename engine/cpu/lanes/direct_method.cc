#include "engine/cpu/lanes/convolution_method.h"
#include "engine/cpu/lanes/direct_convolution.h"
#include "engine/cpu/lanes/lanes.h"
#include "engine/cpu/onednn/layout.h"

namespace arbalest::engine::cpu {

namespace {

// A factor of the kernels: the tensor itself or, for bfloat16, `units` units packed by `pack`.
template <typename Pack>
Operand packed(Program& program, const Operand& tensor, std::int64_t units, const Pack& pack) {
  if (dtype_of(tensor.descriptor) == DType::kFloat32) return tensor;
  const Operand target = program.scratch(plain_descriptor({units}, DType::kFloat32));
  program.add([=](const TaskContext& context, const Addresses& addresses) {
    pack(context.threads, tensor.at<const BFloat16>(addresses), target.at<LaneUnit>(addresses));
  });
  return target;
}
Operand packed_weights(Program& program, const Operand& weights, const LaneConvolution::Planes& of) {
  const std::int64_t plane = elements_of(weights.descriptor) / (of.groups * of.planes);
  return packed(program, weights, of.groups * ((of.planes + 1) / 2) * plane,
                [=](int threads, const BFloat16* from, LaneUnit* to) {
                  pack_planes(threads, of.groups, of.planes, plane, from, to);
                });
}
std::int64_t units_of(const dnnl::memory::desc& images) {
  const dnnl::memory::dims extents = images.dims();
  return extents[0] * ((extents[1] + 1) / 2) * extents[2] * extents[3];
}

// The images with their padding: themselves if there is none, else a copy.
Operand padded(Program& program, const LaneConvolution& convolution, const Operand& images) {
  const auto wanted = lane_descriptor(convolution.padded_shape(), dtype_of(images.descriptor));
  if (wanted == images.descriptor) return images;
  const Operand copy = program.scratch(wanted);
  program.add([=](const TaskContext& context, const Addresses& addresses) {
    convolution.pad(context.threads, images.at<const LaneUnit>(addresses), copy.at<LaneUnit>(addresses));
  });
  return copy;
}

class DirectLaneSteps final : public LaneSteps {
 public:
  explicit DirectLaneSteps(LaneConvolution convolution) : convolution_(std::move(convolution)) {}

  void forward(Program& program, const Operand& input, const Operand& weights, bool has_bias, bool relu,
               const Operand& output) const override {
    const Operand factors = packed_weights(program, weights, convolution_.forward_planes());
    const Operand images = packed(program, input, units_of(input.descriptor),
                                  [convolution = convolution_](int threads, const BFloat16* from, LaneUnit* to) {
                                    convolution.pack_input(threads, from, to);
                                  });
    program.add([=, convolution = convolution_](const TaskContext& context, const Addresses& addresses) {
      const Operand bias{Role::kBias, {}};
      convolution.forward(context.threads, images.at<const LaneUnit>(addresses), factors.at<const LaneUnit>(addresses),
                          has_bias ? bias.at<const float>(addresses) : nullptr, relu, output.at<void>(addresses));
    });
  }

  void input_gradient(Program& program, const Operand& output_gradient, const Operand& weights,
                      const Operand& gradient) const override {
    const Operand factors = packed_weights(program, weights, convolution_.input_gradient_planes());
    const Operand arriving = packed(program, output_gradient, units_of(output_gradient.descriptor),
                                    [convolution = convolution_](int threads, const BFloat16* from, LaneUnit* to) {
                                      convolution.pack_output_gradient(threads, from, to);
                                    });
    program.add([=, convolution = convolution_](const TaskContext& context, const Addresses& addresses) {
      convolution.input_gradient(context.threads, arriving.at<const LaneUnit>(addresses),
                                 factors.at<const LaneUnit>(addresses), gradient.at<void>(addresses));
    });
  }

  void weights_gradient(Program& program, const Operand& input, const Operand& output_gradient, bool has_bias,
                        const Operand& gradient) const override {
    const Operand images = padded(program, convolution_, input);
    program.add([=, convolution = convolution_](const TaskContext& context, const Addresses& addresses) {
      const Operand bias{Role::kBiasGradient, {}};
      convolution.weights_gradient(context.threads, images.at<const LaneUnit>(addresses),
                                   output_gradient.at<const LaneUnit>(addresses), gradient.at<float>(addresses),
                                   has_bias ? bias.at<float>(addresses) : nullptr);
    });
  }

 private:
  LaneConvolution convolution_;
};

}  // namespace

std::unique_ptr<LaneSteps> direct_lane_steps(const Conv2dSpec& spec, DType type) {
  const LaneKernels& kernels = type == DType::kBFloat16 ? *bfloat16_lane_kernels() : lane_kernels();
  return std::make_unique<DirectLaneSteps>(LaneConvolution(spec.input.shape(), spec.filters, spec.window, kernels));
}

}  // namespace arbalest::engine::cpu
