// Creates CPU operators. Before a call, set the thread count with ThreadCountScope (engine/cpu/runtime/threads.h): a
// oneDNN primitive keeps the thread count under which it was created.
#pragma once

#include <memory>

#include <dnnl.hpp>

#include "engine/operator.h"

namespace arbalest::engine::cpu {

// Calls make_operator for the alternative that `spec` holds, and translates oneDNN's exceptions into Error
// (engine/cpu/runtime/errors.h).
std::unique_ptr<Operator> prepare(const OperatorSpec& spec, const PrepareOptions& options, const dnnl::engine& engine);

// One overload per alternative of OperatorSpec. These do not translate oneDNN's exceptions.
std::unique_ptr<Operator> make_operator(const Conv2dSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine);
std::unique_ptr<Operator> make_operator(const DenseSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine);
std::unique_ptr<Operator> make_operator(const Pool2dSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine);
std::unique_ptr<Operator> make_operator(const ActivationSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine);
std::unique_ptr<Operator> make_operator(const DropoutSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine);
std::unique_ptr<Operator> make_operator(const FlattenSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine);
std::unique_ptr<Operator> make_operator(const AddSpec& spec, const PrepareOptions& options, const dnnl::engine& engine);
std::unique_ptr<Operator> make_operator(const ConcatSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine);
std::unique_ptr<Operator> make_operator(const PaddedShortcutSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine);
std::unique_ptr<Operator> make_operator(const LocalResponseNormSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine);
std::unique_ptr<Operator> make_operator(const SoftmaxSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine);
std::unique_ptr<Operator> make_operator(const SoftmaxCrossEntropySpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine);
std::unique_ptr<Operator> make_operator(const AccuracySpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine);
std::unique_ptr<Operator> make_operator(const BatchNormSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine);
std::unique_ptr<Operator> make_operator(const EmbeddingSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine);
std::unique_ptr<Operator> make_operator(const InnerProductSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine);
std::unique_ptr<Operator> make_operator(const SquaredErrorSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine);
std::unique_ptr<Operator> make_operator(const ExchangeSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine);

}  // namespace arbalest::engine::cpu
