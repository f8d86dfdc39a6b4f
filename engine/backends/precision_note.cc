#include "engine/backends/precision_note.h"

#include <algorithm>
#include <string_view>

namespace arbalest::engine {

namespace {

const char* note_of_gpu(Precision precision) {
  switch (precision) {
    case Precision::kFloat32: return "FP32 multiply-adds without tensor cores; the most exact";
    case Precision::kTensorFloat32:
      return "tensor cores, which read 10 bits of each factor's fraction; as much memory as FP32";
    case Precision::kBFloat16: break;
  }
  return "tensor cores; half the memory of FP32 for activations; small layers may not become faster";
}

const char* note_of_cpu(Precision precision, std::span<const std::string> instruction_sets) {
  const auto has = [&](std::string_view set) {
    return std::ranges::find(instruction_sets, set) != instruction_sets.end();
  };
  switch (precision) {
    case Precision::kFloat32:
      return has("avx512f") ? "multiply-adds of AVX-512; the most exact" : "multiply-adds of AVX2; the most exact";
    case Precision::kTensorFloat32: return "not available: it needs the tensor cores of a GPU";
    case Precision::kBFloat16: break;
  }
  if (!has("avx512_bf16")) {
    return "not available: it needs avx512_bf16, which this processor lacks or ONEDNN_MAX_CPU_ISA forbids";
  }
  if (has("amx_bf16")) {
    return "AMX tiles in large layers, avx512_bf16 in others; half the memory of FP32 for activations; models with "
           "many channels gain most, and small ones may become slower";
  }
  return "dot products of avx512_bf16, without AMX; half the memory of FP32 for activations; faster where the "
         "processor does more of them in a cycle than multiply-adds in FP32 (AMD's Zen 4), else often slower";
}

}  // namespace

std::string precision_note(const DeviceSpec& device, Precision precision,
                           std::span<const std::string> instruction_sets) {
  return device.is_cuda() ? note_of_gpu(precision) : note_of_cpu(precision, instruction_sets);
}

}  // namespace arbalest::engine
