// Exchanges of a split model between GPUs (engine/ops/exchange.h). Pieces of columns lie side by side in a tensor and
// one after the other in an exchange, so they are copied on the way.
#include "engine/ops/exchange.h"

#include <algorithm>

#include "engine/base/alignment.h"
#include "engine/base/error.h"
#include "engine/cuda/exchange/gpu_exchange.h"
#include "engine/cuda/kernels/layout.h"
#include "engine/cuda/kernels/transpose.h"
#include "engine/cuda/operators/bias.h"
#include "engine/cuda/operators/operators.h"
#include "engine/cuda/runtime/check.h"
#include "engine/cuda/runtime/stream.h"
#include "engine/ops/exchange_sizes.h"

namespace arbalest::engine::cuda {

namespace {

class Exchange final : public Operator {
 public:
  Exchange(const ExchangeSpec& spec, const PrepareOptions& options);

  void forward(Stream& stream, const char* label, const ForwardOperands& operands) const override;
  void backward(Stream& stream, const char* label, const BackwardOperands& operands) const override;

 private:
  struct Tensors {
    const float* from = nullptr;
    float* to = nullptr;
    float* scratch = nullptr;
  };

  GpuExchange& group() const { return static_cast<GpuExchange&>(*place_.group); }
  void exchange(ExchangeKind kind, const Tensors& tensors, cudaStream_t stream) const;
  // Copies the columns of each rank from a tensor [b, n] to pieces [ranks, b, n / ranks], or back.
  void cut_columns(const float* tensor, float* pieces, cudaStream_t stream) const;
  void join_columns(const float* pieces, float* tensor, cudaStream_t stream) const;
  // Numbers of a tensor [b, n], and of the part of one rank in it.
  std::size_t own_floats() const { return static_cast<std::size_t>(sizes_.examples * sizes_.columns); }
  std::size_t part_floats() const { return static_cast<std::size_t>(sizes_.examples * sizes_.part()); }

  const ExchangeMember place_;
  const ExchangeSizes sizes_;
  const bool has_bias_;
};

Exchange::Exchange(const ExchangeSpec& spec, const PrepareOptions& options)
    : place_(spec.place), sizes_(sizes_of(spec)), has_bias_(spec.bias) {
  traits_.output = make_layout(sizes_.output(), DType::kFloat32, Order::kCanonical);
  if (!sizes_.is_whole()) traits_.scratch_bytes = aligned(own_floats() * sizeof(float));
  if (!has_bias_) return;
  traits_.parameters.push_back(make_layout({sizes_.columns}, DType::kFloat32, Order::kCanonical));
  if (options.mode != OperatorMode::kInference) {
    traits_.scratch_bytes = std::max(traits_.scratch_bytes, column_sum_bytes({sizes_.examples, sizes_.columns}));
  }
}

void Exchange::cut_columns(const float* tensor, float* pieces, cudaStream_t stream) const {
  const std::size_t width = static_cast<std::size_t>(sizes_.part()) * sizeof(float);
  for (std::int64_t rank = 0; rank < sizes_.ranks; ++rank) {
    ARBALEST_CUDA(cudaMemcpy2DAsync(pieces + static_cast<std::size_t>(rank) * part_floats(), width,
                                    tensor + rank * sizes_.part(), width * static_cast<std::size_t>(sizes_.ranks),
                                    width, static_cast<std::size_t>(sizes_.examples), cudaMemcpyDeviceToDevice,
                                    stream));
  }
}

void Exchange::join_columns(const float* pieces, float* tensor, cudaStream_t stream) const {
  const std::size_t width = static_cast<std::size_t>(sizes_.part()) * sizeof(float);
  for (std::int64_t rank = 0; rank < sizes_.ranks; ++rank) {
    ARBALEST_CUDA(cudaMemcpy2DAsync(tensor + rank * sizes_.part(), width * static_cast<std::size_t>(sizes_.ranks),
                                    pieces + static_cast<std::size_t>(rank) * part_floats(), width, width,
                                    static_cast<std::size_t>(sizes_.examples), cudaMemcpyDeviceToDevice, stream));
  }
}

void Exchange::exchange(ExchangeKind kind, const Tensors& tensors, cudaStream_t stream) const {
  switch (kind) {
    case ExchangeKind::kGather: return group().gather(place_.rank, tensors.from, tensors.to, own_floats(), stream);
    case ExchangeKind::kScatterSums:
      return group().scatter_sums(place_.rank, tensors.from, tensors.to, own_floats(), stream);
    case ExchangeKind::kToColumns:
      cut_columns(tensors.from, tensors.scratch, stream);
      return group().all_to_all(place_.rank, tensors.scratch, tensors.to, part_floats(), stream);
    case ExchangeKind::kToExamples:
      group().all_to_all(place_.rank, tensors.from, tensors.scratch, part_floats(), stream);
      return join_columns(tensors.scratch, tensors.to, stream);
  }
}

void Exchange::forward(Stream& stream, const char* label, const ForwardOperands& operands) const {
  const Tensors tensors{.from = static_cast<const float*>(operands.inputs[0]),
                        .to = static_cast<float*>(operands.output),
                        .scratch = static_cast<float*>(operands.scratch)};
  const float* const bias = has_bias_ ? static_cast<const float*>(operands.parameters[0]) : nullptr;
  as_cuda(stream).submit(label, [this, tensors, bias](const StreamContext& context) {
    exchange(sizes_.kind, tensors, context.stream.handle);
    finish_output(tensors.to, bias, std::nullopt, {sizes_.examples, sizes_.columns}, context.stream);
  });
}

void Exchange::backward(Stream& stream, const char* label, const BackwardOperands& operands) const {
  auto* const gradient = static_cast<float*>(operands.output_gradient);
  const Tensors tensors{.from = gradient,
                        .to = static_cast<float*>(operands.input_gradients[0]),
                        .scratch = static_cast<float*>(operands.scratch)};
  float* const sums = has_bias_ ? static_cast<float*>(operands.parameter_gradients[0]) : nullptr;
  as_cuda(stream).submit(label, [this, tensors, gradient, sums](const StreamContext& context) {
    if (sums != nullptr) {
      begin_gradient(gradient, nullptr, std::nullopt, sums, {sizes_.examples, sizes_.columns}, tensors.scratch,
                     context.stream);
    }
    if (tensors.to != nullptr) exchange(way_back(sizes_.kind), tensors, context.stream.handle);
  });
}

}  // namespace

std::unique_ptr<Operator> make_operator(const ExchangeSpec& spec, const PrepareOptions& options) {
  ARBALEST_CHECK(arrangement_of(spec.input) == (Arrangement{DType::kFloat32, Order::kCanonical}));
  ARBALEST_CHECK(!spec.bias || spec.kind == ExchangeKind::kScatterSums);
  return std::make_unique<Exchange>(spec, options);
}

}  // namespace arbalest::engine::cuda
