// A small checkpoint for tests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_writer.h"

namespace arbalest::jobs {

inline std::vector<dataflow::NamedTensor> small_tensors(float first) {
  return {{"conv.weight", {2, 1, 2}, {first, 2, 3, 4}}, {"conv.bias", {2}, {-0.0F, 0.5F}}, {"none", {0}, {}}};
}

// The contents of a small checkpoint differ from those of every other number of batches.
inline void fill(CheckpointWriter& writer, std::uint64_t batches) {
  const auto number = static_cast<float>(batches);
  writer.add_tensors("central.safetensors", small_tensors(number), {{"batches", std::to_string(batches)}});
  writer.add_tensors("learner-00.safetensors", small_tensors(number + 0.25F), {});
  writer.add_text("state.txtpb", "batches: " + std::to_string(batches) + "\n");
}

inline std::filesystem::path write_small(const std::filesystem::path& checkpoints, std::uint64_t batches) {
  CheckpointWriter writer(checkpoints, batches);
  fill(writer, batches);
  return writer.commit();
}

// Whether the checkpoint holds what write_small wrote for its number of batches.
inline bool holds_small(const Checkpoint& checkpoint) {
  return read_text(checkpoint, "state.txtpb") == "batches: " + std::to_string(checkpoint.batches) + "\n" &&
         read_tensors(checkpoint, "central.safetensors")[0].values[0] == static_cast<float>(checkpoint.batches);
}

}  // namespace arbalest::jobs
