// Tests which devices support which precision.
#include "engine/base/precision.h"

#include <string>
#include <vector>

#include "engine/backends/devices.h"
#include "engine/backends/precision_note.h"
#include "tests/support/catch.h"

namespace arbalest::tests {

using engine::DeviceSpec;
using engine::Precision;

TEST_CASE("a CPU supports FP32, BF16 if it has the instructions, and never TF32") {
  const DeviceSpec cpu{"cpu:0-1", {0, 1}};
  const std::vector<std::string> old = {"avx2", "avx512f", "avx512bw", "avx512_vnni"};
  std::vector<std::string> recent = old;
  recent.push_back("avx512_bf16");
  for (const auto& sets : {old, recent}) {
    CHECK(precision_problem(cpu, Precision::kFloat32, sets).empty());
    CHECK(precision_problem(cpu, Precision::kTensorFloat32, sets) ==
          "precision TF32 needs a GPU, and 'cpu:0-1' is none; name a GPU, as in devices: \"cuda:0\", or leave "
          "precision out");
  }
  CHECK(precision_problem(cpu, Precision::kBFloat16, recent).empty());
  CHECK(precision_problem(cpu, Precision::kBFloat16, old) ==
        "precision BF16 needs a GPU or a processor with avx512_bf16, and 'cpu:0-1' is a processor without; name a GPU, "
        "as in devices: \"cuda:0\", or leave precision out");
  for (const Precision precision : {Precision::kFloat32, Precision::kTensorFloat32, Precision::kBFloat16}) {
    CHECK(precision_problem({"cuda:0", {}, 0}, precision, {}).empty());
    CHECK(precision_problem(cpu, precision) == precision_problem(cpu, precision, engine::instruction_sets_in_force()));
  }
}

TEST_CASE("the note of a precision names the instructions that are in force") {
  const DeviceSpec cpu{"cpu", {}};
  const auto note = [&](Precision precision, const std::vector<std::string>& sets) {
    return engine::precision_note(cpu, precision, sets);
  };
  CHECK(note(Precision::kFloat32, {"avx2"}).starts_with("multiply-adds of AVX2;"));
  CHECK(note(Precision::kFloat32, {"avx2", "avx512f"}).starts_with("multiply-adds of AVX-512;"));
  CHECK(note(Precision::kTensorFloat32, {"avx2"}).starts_with("not available"));
  CHECK(note(Precision::kBFloat16, {"avx2", "avx512f"}).starts_with("not available: it needs avx512_bf16"));
  CHECK(note(Precision::kBFloat16, {"avx512f", "avx512_bf16"}).starts_with("dot products of avx512_bf16"));
  CHECK(note(Precision::kBFloat16, {"avx512f", "avx512_bf16", "amx_bf16"}).starts_with("AMX tiles"));
  for (const Precision precision : {Precision::kTensorFloat32, Precision::kBFloat16}) {
    CHECK(engine::precision_note({"cuda:0", {}, 0}, precision, {}).starts_with("tensor cores"));
  }
}

}  // namespace arbalest::tests
