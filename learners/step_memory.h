// The memory through which a mini-batch and its parameters reach a recorded task.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataflow/input/batches/cached_data.h"
#include "dataflow/memory/plan.h"
#include "engine/passes/step_parameters.h"
#include "engine/stream.h"

namespace arbalest::learners {

// Bytes of StepParameters, followed by the indices of a mini-batch of `batch` examples.
constexpr std::size_t step_bytes(std::int64_t batch) {
  static_assert(sizeof(engine::StepParameters) % alignof(std::int64_t) == 0);
  return sizeof(engine::StepParameters) + static_cast<std::size_t>(batch) * sizeof(std::int64_t);
}
inline std::int64_t* indices_in(std::byte* step) {
  return reinterpret_cast<std::int64_t*>(step + sizeof(engine::StepParameters));
}

// Records that a mini-batch is gathered from `data` into the plan's inputs; null: nothing, as the batch brings them.
inline void enqueue_gather(engine::Stream& stream, const dataflow::Plan& plan, const dataflow::CachedData* data,
                           std::byte* step, std::byte* arena) {
  if (data == nullptr) return;
  stream.enqueue(data->gather({.indices = indices_in(step),
                               .images = plan.input<float>(dataflow::InputDescription::kImage, arena),
                               .labels = plan.input<std::int32_t>(dataflow::InputDescription::kLabel, arena),
                               .batch = plan.batch(),
                               .step = reinterpret_cast<engine::StepParameters*>(step)}),
                 "gather");
}

}  // namespace arbalest::learners
