// Makers of prepared operators, one per alternative of OperatorSpec. The caller has set the thread count for which
// primitives are created (ThreadCountScope).
#pragma once

#include <memory>

#include <dnnl.hpp>

#include "engine/operator.h"

namespace arbalest::engine::cpu {

std::unique_ptr<Operator> prepare(const Conv2dSpec& spec, const PrepareOptions& options, const dnnl::engine& engine);
std::unique_ptr<Operator> prepare(const DenseSpec& spec, const PrepareOptions& options, const dnnl::engine& engine);
std::unique_ptr<Operator> prepare(const Pool2dSpec& spec, const PrepareOptions& options, const dnnl::engine& engine);
std::unique_ptr<Operator> prepare(const ActivationSpec& spec, const PrepareOptions& options,
                                  const dnnl::engine& engine);
std::unique_ptr<Operator> prepare(const DropoutSpec& spec, const PrepareOptions& options, const dnnl::engine& engine);
std::unique_ptr<Operator> prepare(const FlattenSpec& spec, const PrepareOptions& options, const dnnl::engine& engine);
std::unique_ptr<Operator> prepare(const SoftmaxCrossEntropySpec& spec, const PrepareOptions& options,
                                  const dnnl::engine& engine);
std::unique_ptr<Operator> prepare(const AccuracySpec& spec, const PrepareOptions& options, const dnnl::engine& engine);

}  // namespace arbalest::engine::cpu
