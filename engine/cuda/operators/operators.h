// Functions that make prepared operators, one per alternative of OperatorSpec. Tensors have the layouts of
// engine/cuda/kernels/layout.h.
#pragma once

#include <memory>

#include "engine/operator.h"

namespace arbalest::engine::cuda {

class LibraryQuestions;

std::unique_ptr<Operator> make_operator(const Conv2dSpec& spec, const PrepareOptions& options,
                                        LibraryQuestions& questions);
std::unique_ptr<Operator> make_operator(const DenseSpec& spec, const PrepareOptions& options);
std::unique_ptr<Operator> make_operator(const Pool2dSpec& spec, const PrepareOptions& options);
std::unique_ptr<Operator> make_operator(const ActivationSpec& spec, const PrepareOptions& options);
std::unique_ptr<Operator> make_operator(const DropoutSpec& spec, const PrepareOptions& options);
std::unique_ptr<Operator> make_operator(const FlattenSpec& spec, const PrepareOptions& options);
std::unique_ptr<Operator> make_operator(const AddSpec& spec, const PrepareOptions& options);
std::unique_ptr<Operator> make_operator(const ConcatSpec& spec, const PrepareOptions& options);
std::unique_ptr<Operator> make_operator(const PaddedShortcutSpec& spec, const PrepareOptions& options);
std::unique_ptr<Operator> make_operator(const LocalResponseNormSpec& spec, const PrepareOptions& options);
std::unique_ptr<Operator> make_operator(const SoftmaxSpec& spec, const PrepareOptions& options);
std::unique_ptr<Operator> make_operator(const SoftmaxCrossEntropySpec& spec, const PrepareOptions& options);
std::unique_ptr<Operator> make_operator(const AccuracySpec& spec, const PrepareOptions& options);
std::unique_ptr<Operator> make_operator(const BatchNormSpec& spec, const PrepareOptions& options);
std::unique_ptr<Operator> make_operator(const EmbeddingSpec& spec, const PrepareOptions& options);
std::unique_ptr<Operator> make_operator(const InnerProductSpec& spec, const PrepareOptions& options);
std::unique_ptr<Operator> make_operator(const SquaredErrorSpec& spec, const PrepareOptions& options);
std::unique_ptr<Operator> make_operator(const ExchangeSpec& spec, const PrepareOptions& options);

}  // namespace arbalest::engine::cuda
