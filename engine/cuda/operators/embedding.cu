#include <limits>

#include "engine/base/error.h"
#include "engine/cuda/kernels/block.h"
#include "engine/cuda/kernels/layout.h"
#include "engine/cuda/kernels/rows.h"
#include "engine/cuda/operators/operators.h"
#include "engine/cuda/runtime/stream.h"

namespace arbalest::engine::cuda {

namespace {

// The ids of one column of the mini-batch.
struct Ids {
  const std::int32_t* ids;
  std::int64_t examples;
  std::int64_t columns;
  std::int64_t column;

  __device__ std::int32_t at(std::int64_t n) const { return ids[n * columns + column]; }

  template <typename Visitor>
  __host__ __device__ friend constexpr void visit_addresses(Ids& of, Visitor&& visit) {
    visit(of.ids);
  }
};

struct Table {
  std::int64_t rows;
  std::int64_t width;

  __device__ bool has(std::int32_t id) const { return id >= 0 && id < rows; }
};

// An id without a row gives NaN: a kernel has no other way to report it.
__device__ void look_up(Ids ids, Table table, const float* weights, float* output) {
  for (std::int64_t i = first_element(); i < ids.examples * table.width; i += element_step()) {
    const std::int64_t n = i / table.width;
    const std::int32_t id = ids.at(n);
    output[i] =
        table.has(id) ? weights[id * table.width + i - n * table.width] : std::numeric_limits<float>::quiet_NaN();
  }
}

// Number of examples before n that have n's id, among the lane's examples.
__device__ std::int32_t earlier_of_lane(const Ids& ids, std::int64_t n, int lane) {
  std::int32_t earlier = 0;
  for (std::int64_t m = lane; m < n; m += kRowLanes) earlier += ids.at(m) == ids.at(n) ? 1 : 0;
  return earlier;
}

// The lanes of an id's first example in the mini-batch add up the gradients of all its examples, in the order of the
// mini-batch. `gradient` is zero before the call.
__device__ void add_rows(Ids ids, Table table, const float* arriving, float* gradient) {
  __shared__ std::int32_t earlier[kBlockRows][kRowLanes];
  for_rows(ids.examples, [&](const RowPlace& at) {
    const auto [n, slot, lane] = at;
    const bool is_there = n < ids.examples && table.has(ids.at(n));
    earlier[slot][lane] = is_there ? earlier_of_lane(ids, n, lane) : 1;
    __syncthreads();
    const bool is_first = sum_of_lanes(earlier[slot]) == 0;
    for (std::int64_t c = lane; is_first && c < table.width; c += kRowLanes) {
      float sum = 0.0F;
      for (std::int64_t m = n; m < ids.examples; ++m) {
        if (ids.at(m) == ids.at(n)) sum += arriving[m * table.width + c];
      }
      gradient[ids.at(n) * table.width + c] = sum;
    }
  });
}

class Embedding final : public Operator {
 public:
  explicit Embedding(const EmbeddingSpec& spec)
      : examples_(spec.ids.shape()[0]),
        columns_(spec.ids.shape()[1]),
        column_(spec.column),
        table_{spec.rows, spec.width} {
    traits_.output = make_layout({examples_, table_.width}, DType::kFloat32, Order::kCanonical);
    traits_.parameters = {make_layout({table_.rows, table_.width}, DType::kFloat32, Order::kCanonical)};
    traits_.backward_reads_inputs = true;
  }

  void forward(Stream& stream, const char* label, const ForwardOperands& operands) const override {
    const Ids ids = ids_in(operands.inputs);
    const auto* weights = static_cast<const float*>(operands.parameters[0]);
    auto* output = static_cast<float*>(operands.output);
    as_cuda(stream).submit(label, [=, this](const StreamContext& context) {
      launch<look_up>(blocks_for(examples_ * table_.width), context.stream, ids, table_, weights, output);
    });
  }

  void backward(Stream& stream, const char* label, const BackwardOperands& operands) const override {
    const Ids ids = ids_in(operands.inputs);
    const auto* arriving = static_cast<const float*>(operands.output_gradient);
    auto* gradient = static_cast<float*>(operands.parameter_gradients[0]);
    as_cuda(stream).submit(label, [=, this](const StreamContext& context) {
      for_each_replica(context.stream, [&](const auto& place) {
        ARBALEST_CUDA(cudaMemsetAsync(place(gradient), 0, traits_.parameters[0].bytes(), context.stream.handle));
      });
      launch<add_rows>(blocks_of_rows(examples_), context.stream, ids, table_, arriving, gradient);
    });
  }

 private:
  Ids ids_in(std::span<const void* const> inputs) const {
    return {static_cast<const std::int32_t*>(inputs[0]), examples_, columns_, column_};
  }

  const std::int64_t examples_;
  const std::int64_t columns_;
  const std::int64_t column_;
  const Table table_;
};

}  // namespace

std::unique_ptr<Operator> make_operator(const EmbeddingSpec& spec, const PrepareOptions& /*options*/) {
  const Shape& shape = spec.ids.shape();
  ARBALEST_CHECK(shape.rank() == 2 && spec.ids.dtype() == DType::kInt32 && spec.column < shape[1]);
  return std::make_unique<Embedding>(spec);
}

}  // namespace arbalest::engine::cuda
