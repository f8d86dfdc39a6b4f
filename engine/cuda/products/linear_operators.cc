// Decides whose kernels compute a convolution or a dense layer: ours, or those of a library.
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/cuda/choice/kernel_chooser.h"
#include "engine/cuda/choice/kernel_questions.h"
#include "engine/cuda/operators/library_operators.h"
#include "engine/cuda/operators/operators.h"
#include "engine/cuda/products/tiled_linear.h"

namespace arbalest::engine::cuda {

namespace {

template <typename Spec, typename MakeLibrary>
std::unique_ptr<Operator> choose(const Spec& spec, const PrepareOptions& options, KernelChooser& chooser,
                                 const MakeLibrary& make_library) {
  std::vector<KernelMaker> candidates{{kLibrary, make_library}};
  if (has_tiled_operator(spec, options)) {
    candidates.push_back({kOwnProduct, [&] { return make_tiled_operator(spec, options); }});
    if (prefers_tiled_operator(spec)) std::swap(candidates.front(), candidates.back());
  }
  return chooser.choose({question_of(spec, options), spec.input, options}, candidates);
}

}  // namespace

std::unique_ptr<Operator> make_operator(const Conv2dSpec& spec, const PrepareOptions& options,
                                        LibraryQuestions& questions, KernelChooser& chooser) {
  return choose(spec, options, chooser, [&] { return make_library_operator(spec, options, questions); });
}

std::unique_ptr<Operator> make_operator(const DenseSpec& spec, const PrepareOptions& options, KernelChooser& chooser) {
  ARBALEST_CHECK(spec.input.shape().rank() >= 2 && spec.units > 0);
  return choose(spec, options, chooser, [&] { return make_library_operator(spec, options); });
}

}  // namespace arbalest::engine::cuda
