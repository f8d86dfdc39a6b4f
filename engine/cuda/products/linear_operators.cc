// Decides whose kernels compute a convolution or a dense layer: ours, or those of a library.
#include "engine/base/error.h"
#include "engine/cuda/operators/library_operators.h"
#include "engine/cuda/operators/operators.h"
#include "engine/cuda/products/tiled_linear.h"

namespace arbalest::engine::cuda {

std::unique_ptr<Operator> make_operator(const Conv2dSpec& spec, const PrepareOptions& options,
                                        LibraryQuestions& questions) {
  if (auto tiled = make_tiled_operator(spec, options)) return tiled;
  return make_library_operator(spec, options, questions);
}

std::unique_ptr<Operator> make_operator(const DenseSpec& spec, const PrepareOptions& options) {
  ARBALEST_CHECK(spec.input.shape().rank() >= 2 && spec.units > 0);
  if (auto tiled = make_tiled_operator(spec, options)) return tiled;
  return make_library_operator(spec, options);
}

}  // namespace arbalest::engine::cuda
