// The vector instructions that kernels on the CPU may use. oneDNN's environment variable ONEDNN_MAX_CPU_ISA (or
// DNNL_MAX_CPU_ISA) limits them, and the kernels of this folder's neighbors obey the same limit.
#pragma once

#include <string_view>

namespace arbalest::engine::cpu {

struct VectorInstructions {
  bool avx512 = false;       // avx512f; narrower vectors otherwise
  bool avx512_bf16 = false;  // implies avx512
  bool amx_bf16 = false;
};

// The instructions in force: those of the processor that the limit allows. They never change in a process.
const VectorInstructions& vector_instructions();

// Whether the limit allows an instruction set of host::instruction_sets(), such as "avx512_bf16". AVX2 and what comes
// with it are part of the program, so they are always allowed.
bool limit_allows(std::string_view instruction_set);

}  // namespace arbalest::engine::cpu
