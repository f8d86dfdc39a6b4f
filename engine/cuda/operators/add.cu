#include "engine/base/error.h"
#include "engine/cuda/kernels/block.h"
#include "engine/cuda/kernels/wide.h"
#include "engine/cuda/operators/activation.h"
#include "engine/cuda/operators/multi_input_operator.h"
#include "engine/cuda/operators/operators.h"

namespace arbalest::engine::cuda {

namespace {

// Below, `T` is the type of the elements. Tensors may share a buffer.
template <typename T>
__device__ void add(const T* a, const T* b, T* sum, std::int64_t elements, bool relu) {
  for_groups<kWide<T>>(elements, [&]<int kNumbers>(std::integral_constant<int, kNumbers>, std::int64_t group) {
    Floats<kNumbers> values = load_group<kNumbers>(a, group) + load_group<kNumbers>(b, group);
    if (relu) {
      for (int n = 0; n < kNumbers; ++n) values.at[n] = Relu{}.output(values.at[n]);
    }
    store_group(values, sum, group);
  });
}

// `output`: null without ReLU. `another`: null if only one gradient is written.
template <typename T>
__device__ void add_backward(const T* arriving, const T* output, T* gradient, T* another, std::int64_t elements) {
  for_groups<kWide<T>>(elements, [&]<int kNumbers>(std::integral_constant<int, kNumbers>, std::int64_t group) {
    Floats<kNumbers> values = load_group<kNumbers>(arriving, group);
    if (output != nullptr) {
      const Floats<kNumbers> sum = load_group<kNumbers>(output, group);
      for (int n = 0; n < kNumbers; ++n) values.at[n] = Relu{}.gradient(sum.at[n], values.at[n]);
    }
    store_group(values, gradient, group);
    if (another != nullptr) store_group(values, another, group);
  });
}

class Add final : public MultiInputOperator {
 public:
  Add(const AddSpec& spec, const PrepareOptions& options)
      : MultiInputOperator(std::vector{spec.a, spec.b}, spec.a.shape()),
        elements_(spec.a.shape().elements()),
        relu_(spec.activation.has_value()) {
    const bool training = options.mode == OperatorMode::kTraining;
    traits_.symmetric_inputs = true;
    traits_.in_place_forward = true;
    traits_.in_place_backward = training;
    traits_.passes_gradient = training && !relu_;
    traits_.backward_reads_output = training && relu_;
  }

 private:
  void join(const std::vector<const void*>& inputs, void* output, const TeamStream& stream) const override {
    const auto run = dtype() == DType::kBFloat16 ? &Add::launch_add<BFloat16> : &Add::launch_add<float>;
    (this->*run)(inputs[0], inputs[1], output, stream);
  }

  // The gradients of inputs that are not copied may share one address, possibly the output gradient's.
  void split(const void* arriving, const void* output, const std::vector<void*>& gradients,
             const TeamStream& stream) const override {
    void* first = gradients[0] != nullptr ? gradients[0] : gradients[1];
    void* second = gradients[1] != first ? gradients[1] : nullptr;
    if (!relu_ && first == arriving) first = std::exchange(second, nullptr);
    if (first == nullptr) return;
    const auto run = dtype() == DType::kBFloat16 ? &Add::launch_backward<BFloat16> : &Add::launch_backward<float>;
    (this->*run)(arriving, relu_ ? output : nullptr, first, second, stream);
  }

  template <typename T>
  void launch_add(const void* a, const void* b, void* sum, const TeamStream& stream) const {
    launch<add<T>>(blocks_for_groups<kWide<T>>(elements_), stream, static_cast<const T*>(a), static_cast<const T*>(b),
                   static_cast<T*>(sum), elements_, relu_);
  }

  template <typename T>
  void launch_backward(const void* arriving, const void* output, void* first, void* second,
                       const TeamStream& stream) const {
    launch<add_backward<T>>(blocks_for_groups<kWide<T>>(elements_), stream, static_cast<const T*>(arriving),
                            static_cast<const T*>(output), static_cast<T*>(first), static_cast<T*>(second), elements_);
  }

  const std::int64_t elements_;
  const bool relu_;
};

}  // namespace

std::unique_ptr<Operator> make_operator(const AddSpec& spec, const PrepareOptions& options) {
  ARBALEST_CHECK(spec.a.shape() == spec.b.shape());
  ARBALEST_CHECK(spec.activation.value_or(ActivationKind::kRelu) == ActivationKind::kRelu);
  return std::make_unique<Add>(spec, options);
}

}  // namespace arbalest::engine::cuda
