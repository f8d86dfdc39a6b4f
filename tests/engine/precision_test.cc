// Tests which devices support which precision.
#include "engine/base/precision.h"

#include <string>
#include <vector>

#include "engine/backends/devices.h"
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

}  // namespace arbalest::tests
