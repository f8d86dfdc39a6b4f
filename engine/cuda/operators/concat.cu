#include "engine/base/error.h"
#include "engine/cuda/kernels/block.h"
#include "engine/cuda/operators/multi_input_operator.h"
#include "engine/cuda/operators/operators.h"
#include "engine/elementwise/bfloat16.h"

namespace arbalest::engine::cuda {

namespace {

// The columns from `first` on of a row-major matrix with `width` columns.
struct Columns {
  std::int64_t width;
  std::int64_t first;
};

// Copies rows x columns elements from one matrix to another.
template <typename T>
__device__ void copy_columns(const T* from, Columns source, T* to, Columns target, std::int64_t rows,
                             std::int64_t columns) {
  for (std::int64_t i = first_element(); i < rows * columns; i += element_step()) {
    const std::int64_t row = i / columns;
    const std::int64_t column = i - row * columns;
    to[row * target.width + target.first + column] = from[row * source.width + source.first + column];
  }
}

// Treats tensors as matrices, so that each input is a range of the output's columns. A row is an example, or a pixel if
// channels are last.
class Concat final : public MultiInputOperator {
 public:
  Concat(const ConcatSpec& spec, const Shape& output)
      : MultiInputOperator(spec.inputs, output),
        rows_(output[0] * (channels_last() ? output[2] * output[3] : 1)),
        width_(output.elements() / rows_) {}

 private:
  void join(const std::vector<const void*>& inputs, void* output, const TeamStream& stream) const override {
    std::int64_t first = 0;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const std::int64_t columns = shape(k).elements() / rows_;
      copy(inputs[k], {columns, 0}, output, {width_, first}, columns, stream);
      first += columns;
    }
  }

  void split(const void* arriving, const void* /*output*/, const std::vector<void*>& gradients,
             const TeamStream& stream) const override {
    std::int64_t first = 0;
    for (std::size_t k = 0; k < gradients.size(); ++k) {
      const std::int64_t columns = shape(k).elements() / rows_;
      if (gradients[k] != nullptr) copy(arriving, {width_, first}, gradients[k], {columns, 0}, columns, stream);
      first += columns;
    }
  }

  void copy(const void* from, const Columns& source, void* to, const Columns& target, std::int64_t columns,
            const TeamStream& stream) const {
    const std::int64_t blocks = blocks_for(rows_ * columns);
    if (dtype() == DType::kBFloat16) {
      launch<copy_columns<BFloat16>>(blocks, stream, static_cast<const BFloat16*>(from), source,
                                     static_cast<BFloat16*>(to), target, rows_, columns);
    } else {
      launch<copy_columns<float>>(blocks, stream, static_cast<const float*>(from), source, static_cast<float*>(to),
                                  target, rows_, columns);
    }
  }

  const std::int64_t rows_;
  const std::int64_t width_;
};

}  // namespace

std::unique_ptr<Operator> make_operator(const ConcatSpec& spec, const PrepareOptions& /*options*/) {
  ARBALEST_CHECK(!spec.inputs.empty());
  return std::make_unique<Concat>(spec, concat_shape(spec));
}

}  // namespace arbalest::engine::cuda
