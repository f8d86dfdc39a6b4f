// Functions that make prepared operators, one per alternative of OperatorSpec (engine/operator.h). Tensors have the
// layouts of engine/cuda/kernels/layout.h.
#pragma once

#include <memory>

#include "engine/operator.h"

namespace arbalest::engine::cuda {

class LibraryQuestions;

// One function per operator. Only convolutions, which ask cuDNN, have the one with questions instead.
#define ARBALEST_MAKE(Spec) make_operator(const Spec& spec, const PrepareOptions& options)
std::unique_ptr<Operator> ARBALEST_OPERATORS(ARBALEST_MAKE);
#undef ARBALEST_MAKE
std::unique_ptr<Operator> make_operator(const Conv2dSpec& spec, const PrepareOptions& options,
                                        LibraryQuestions& questions);

}  // namespace arbalest::engine::cuda
