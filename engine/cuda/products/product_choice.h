// The candidates of kernels for convolutions and dense layers: our own and a library's.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "engine/cuda/choice/kernel_chooser.h"
#include "engine/cuda/choice/kernel_questions.h"
#include "engine/cuda/products/tiled_linear.h"

namespace arbalest::engine::cuda {

// `make_library` makes the operator whose products a library computes. Throws as KernelChooser::choose does.
template <typename Spec, typename MakeLibrary>
std::unique_ptr<Operator> choose_product(const Spec& spec, const PrepareOptions& options, KernelChooser& chooser,
                                         const MakeLibrary& make_library) {
  std::vector<KernelMaker> candidates{{kLibrary, make_library}};
  if (has_tiled_operator(spec, options)) {
    candidates.push_back({kOwnProduct, [&] { return make_tiled_operator(spec, options); }});
    if (prefers_tiled_operator(spec)) std::swap(candidates.front(), candidates.back());
  }
  return chooser.choose({question_of(spec, options), spec.input, options}, candidates);
}

}  // namespace arbalest::engine::cuda
