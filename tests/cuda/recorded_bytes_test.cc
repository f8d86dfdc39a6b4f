// Compares the bytes of models after a few rounds in FP32 with those that the stand-in of CUDA's libraries has given.
// On a real GPU this is the comparison of its arithmetic with the stand-in's.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tests/cuda/byte_exact_nets.h"
#include "tests/cuda/gpus.h"
#include "tests/support/catch.h"
#include "tests/support/weights.h"

namespace arbalest::tests {

namespace {

// FNV-1a of 64 bits: offset basis and prime of http://www.isthe.com/chongo/tech/comp/fnv/.
std::uint64_t hash_of(const std::vector<float>& weights) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::byte byte : std::as_bytes(std::span(weights))) {
    hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3;
  }
  return hash;
}

// Of the central model. A difference in `initial` lies in the host's random numbers, one in `first` in a kernel, and
// one in `third` alone in rare values.
struct Hashes {
  std::uint64_t initial;
  std::uint64_t second;  // after two rounds
  std::uint64_t fourth;
};

Hashes hashes_of(const ByteExactNet& net) {
  use_gpus(1);
  TrainingRig rig(rig_of(net));
  Hashes hashes{};
  hashes.initial = hash_of(model_weights(rig));
  rig.run(2);
  hashes.second = hash_of(model_weights(rig));
  rig.run(2);
  hashes.fourth = hash_of(model_weights(rig));
  return hashes;
}

}  // namespace

TEST_CASE("LeNet and ResNet-20 get the bytes that the stand-in has given", "[training][teams]") {
  const Hashes lenet = hashes_of(kByteExactNets[0]);
  CHECK(lenet.initial == 0x9b744973bfefd2b0);
  CHECK(lenet.second == 0xec6bd3d39ea5788c);
  CHECK(lenet.fourth == 0x0690bd6d2eb6908f);
  const Hashes resnet = hashes_of(kByteExactNets[1]);
  CHECK(resnet.initial == 0xaab227afe49f6680);
  CHECK(resnet.second == 0x7e8bdc6ef4bb5bf4);
  CHECK(resnet.fourth == 0x7702d9c29e376dd8);
}

}  // namespace arbalest::tests
