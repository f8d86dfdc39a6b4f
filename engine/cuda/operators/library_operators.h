// Convolutions by cuDNN and dense layers by cuBLAS, which support every spec. Throw as make_operator does.
#pragma once

#include <memory>

#include "engine/operator.h"

namespace arbalest::engine::cuda {

class LibraryQuestions;

std::unique_ptr<Operator> make_library_operator(const Conv2dSpec& spec, const PrepareOptions& options,
                                                LibraryQuestions& questions);
std::unique_ptr<Operator> make_library_operator(const DenseSpec& spec, const PrepareOptions& options);

}  // namespace arbalest::engine::cuda
