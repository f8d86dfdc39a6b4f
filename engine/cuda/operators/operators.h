// Functions that make prepared operators, one per alternative of OperatorSpec (engine/operator.h). Tensors have the
// layouts of engine/cuda/kernels/layout.h.
#pragma once

#include <memory>

#include "engine/operator.h"

namespace arbalest::engine::cuda {

class KernelChooser;
class LibraryQuestions;

// One function per operator. Those with several candidates of kernels have the one with a chooser instead; convolutions
// also ask cuDNN.
#define ARBALEST_MAKE(Spec) make_operator(const Spec& spec, const PrepareOptions& options)
std::unique_ptr<Operator> ARBALEST_OPERATORS(ARBALEST_MAKE);
#undef ARBALEST_MAKE
std::unique_ptr<Operator> make_operator(const Conv2dSpec& spec, const PrepareOptions& options,
                                        LibraryQuestions& questions, KernelChooser& chooser);
std::unique_ptr<Operator> make_operator(const DenseSpec& spec, const PrepareOptions& options, KernelChooser& chooser);

}  // namespace arbalest::engine::cuda
