// Exchanges of a split model. Every rank's stream thread copies, or adds, what it needs from the tensors of all ranks.
#include "engine/ops/exchange.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/cpu/exchange/device_exchange.h"
#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/operators/operators.h"
#include "engine/cpu/runtime/parallel.h"
#include "engine/cpu/runtime/stream.h"
#include "engine/cpu/runtime/task.h"

namespace arbalest::engine::cpu {

namespace {

// Writes output rows [begin, end), each of which has the row's columns of one rank, or of all.
void read_rows(const ExchangeSizes& sizes, std::span<const Piece> pieces, float* output, std::int64_t begin,
               std::int64_t end) {
  const std::int64_t width = sizes.width();
  for (std::int64_t row = begin; row < end; ++row) {
    switch (sizes.kind) {
      case ExchangeKind::kGather:
      case ExchangeKind::kToColumns: {
        const Piece& from = pieces[static_cast<std::size_t>(row / sizes.examples)];
        std::copy_n(from.row(row % sizes.examples), width, output + row * width);
        break;
      }
      case ExchangeKind::kScatterSums: {
        float* const sums = output + row * width;
        std::copy_n(pieces.front().row(row), width, sums);
        for (const Piece& other : pieces.subspan(1)) {
          const float* addends = other.row(row);
#pragma omp simd
          for (std::int64_t column = 0; column < width; ++column) sums[column] += addends[column];
        }
        break;
      }
      case ExchangeKind::kToExamples:
        for (std::size_t rank = 0; rank < pieces.size(); ++rank) {
          std::copy_n(pieces[rank].row(row), width,
                      output + row * sizes.columns + static_cast<std::int64_t>(rank) * width);
        }
        break;
    }
  }
}

void add_bias(const ExchangeSizes& sizes, const float* bias, float* values) {
  for (std::int64_t row = 0; row < sizes.examples; ++row) {
    float* const sums = values + row * sizes.columns;
#pragma omp simd
    for (std::int64_t column = 0; column < sizes.columns; ++column) sums[column] += bias[column];
  }
}

void sum_rows(const ExchangeSizes& sizes, const float* gradient, float* sums) {
  std::fill_n(sums, sizes.columns, 0.0F);
  for (std::int64_t row = 0; row < sizes.examples; ++row) {
    const float* addends = gradient + row * sizes.columns;
#pragma omp simd
    for (std::int64_t column = 0; column < sizes.columns; ++column) sums[column] += addends[column];
  }
}

class ExchangeTask final : public Task {
 public:
  struct Addresses {
    const float* input = nullptr;
    float* output = nullptr;         // null: nothing is exchanged
    const float* bias = nullptr;     // added to the output unless null
    float* bias_gradient = nullptr;  // the sum of the input's rows, unless null
  };

  ExchangeTask(ExchangeMember place, const ExchangeSizes& sizes, const Addresses& addresses)
      : place_(std::move(place)),
        group_(static_cast<DeviceExchange&>(*place_.group)),
        sizes_(sizes),
        addresses_(addresses) {}

  void run(const TaskContext& context) override {
    if (addresses_.bias_gradient != nullptr) sum_rows(sizes_, addresses_.input, addresses_.bias_gradient);
    if (addresses_.output == nullptr) return;
    const ShownTensor own{addresses_.input, sizes_};
    group_.exchange(place_.rank, own, context.threads, [&](std::span<const Piece> pieces) {
      const std::int64_t rows = sizes_.output()[0];
      const std::int64_t parts = std::min<std::int64_t>(context.threads, rows);
      for_each_part(context.threads, parts, [&](std::int64_t part) {
        read_rows(sizes_, pieces, addresses_.output, rows * part / parts, rows * (part + 1) / parts);
      });
    });
    if (addresses_.bias != nullptr) add_bias(sizes_, addresses_.bias, addresses_.output);
  }

  void abandon() noexcept override {
    if (addresses_.output != nullptr) group_.break_up();
  }

 private:
  const ExchangeMember place_;
  DeviceExchange& group_;
  const ExchangeSizes sizes_;
  const Addresses addresses_;
};

class ExchangeOperator final : public Operator {
 public:
  explicit ExchangeOperator(const ExchangeSpec& spec)
      : place_(spec.place), sizes_(sizes_of(spec)), has_bias_(spec.bias) {
    traits_.output = make_layout(plain_descriptor(sizes_.output(), DType::kFloat32));
    if (has_bias_) traits_.parameters.push_back(make_layout(plain_descriptor({sizes_.columns}, DType::kFloat32)));
    auto& group = static_cast<DeviceExchange&>(*place_.group);
    group.reserve(sizes_);
    group.reserve(way_back(sizes_));
  }

  void forward(Stream& stream, const char* label, const ForwardOperands& operands) const override {
    submit(stream, label, sizes_,
           {.input = static_cast<const float*>(operands.inputs[0]),
            .output = static_cast<float*>(operands.output),
            .bias = has_bias_ ? static_cast<const float*>(operands.parameters[0]) : nullptr});
  }

  void backward(Stream& stream, const char* label, const BackwardOperands& operands) const override {
    submit(stream, label, way_back(sizes_),
           {.input = static_cast<const float*>(operands.output_gradient),
            .output = static_cast<float*>(operands.input_gradients[0]),
            .bias_gradient = has_bias_ ? static_cast<float*>(operands.parameter_gradients[0]) : nullptr});
  }

 private:
  void submit(Stream& stream, const char* label, const ExchangeSizes& sizes,
              const ExchangeTask::Addresses& addresses) const {
    static_cast<CpuStream&>(stream).submit(std::make_unique<ExchangeTask>(place_, sizes, addresses), label);
  }

  const ExchangeMember place_;
  const ExchangeSizes sizes_;
  const bool has_bias_;
};

}  // namespace

std::unique_ptr<Operator> make_operator(const ExchangeSpec& spec, const PrepareOptions&, const dnnl::engine&) {
  ARBALEST_CHECK(spec.input == make_layout(plain_descriptor(spec.input.shape(), DType::kFloat32)));
  ARBALEST_CHECK(!spec.bias || spec.kind == ExchangeKind::kScatterSums);
  return std::make_unique<ExchangeOperator>(spec);
}

}  // namespace arbalest::engine::cpu
