#include "engine/cpu/operators/operators.h"

#include <variant>

#include "engine/cpu/runtime/errors.h"

namespace arbalest::engine::cpu {

std::unique_ptr<Operator> prepare(const OperatorSpec& spec, const PrepareOptions& options, const dnnl::engine& engine) {
  return translate_errors(
      [&] { return std::visit([&](const auto& kind) { return make_operator(kind, options, engine); }, spec); });
}

}  // namespace arbalest::engine::cpu
