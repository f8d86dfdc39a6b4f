#include "engine/cpu/onednn/instruction_sets.h"

#include <dnnl.hpp>

namespace arbalest::engine::cpu {

namespace {

// Whether oneDNN may use all instructions of `isa`. Its values are bit sets.
bool may_use(dnnl_cpu_isa_t isa) { return (static_cast<unsigned>(dnnl_get_effective_cpu_isa()) & isa) == isa; }

VectorInstructions find_instructions() {
  VectorInstructions found;
  found.avx512 = __builtin_cpu_supports("avx512f") && may_use(dnnl_cpu_isa_avx512_core);
  found.avx512_bf16 = found.avx512 && __builtin_cpu_supports("avx512bf16") && may_use(dnnl_cpu_isa_avx512_core_bf16);
  found.amx_bf16 = __builtin_cpu_supports("amx-bf16") && may_use(dnnl_cpu_isa_avx512_core_amx);
  return found;
}

}  // namespace

const VectorInstructions& vector_instructions() {
  static const VectorInstructions found = find_instructions();
  return found;
}

bool limit_allows(std::string_view instruction_set) {
  if (instruction_set.starts_with("amx")) return may_use(dnnl_cpu_isa_avx512_core_amx);
  if (instruction_set == "avx512_bf16" || instruction_set == "avx512_fp16") {
    return may_use(dnnl_cpu_isa_avx512_core_bf16);
  }
  if (instruction_set == "avx512_vnni") return may_use(dnnl_cpu_isa_avx512_core_vnni);
  if (instruction_set.starts_with("avx512")) return may_use(dnnl_cpu_isa_avx512_core);
  if (instruction_set == "avx_vnni") return may_use(dnnl_cpu_isa_avx2_vnni) || may_use(dnnl_cpu_isa_avx512_core_vnni);
  return true;
}

}  // namespace arbalest::engine::cpu
