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

// One function per operator. These do not translate oneDNN's exceptions.
#define ARBALEST_MAKE(Spec) make_operator(const Spec& spec, const PrepareOptions& options, const dnnl::engine& engine)
std::unique_ptr<Operator> ARBALEST_OPERATORS(ARBALEST_MAKE);
#undef ARBALEST_MAKE

}  // namespace arbalest::engine::cpu
