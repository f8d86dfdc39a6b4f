// Copies vectors of the devices to the host as tensors in canonical order. A split model has a part on each device, and
// all processes give theirs.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "dataflow/parameter_part.h"
#include "scheduler/replicas/replicas.h"
#include "scheduler/replicas/training_state.h"

namespace arbalest::scheduler {

using PoolVector = std::function<const float*(std::size_t pool)>;

dataflow::DeviceVector on_device(const Replicas& replicas, std::size_t pool, const float* vector);

// Returns the split parameters of all devices as whole tensors; none if the model is not split. A call of World's
// operations if it is. No work may be under way on the vectors.
Tensors gather_parts(const Replicas& replicas, dataflow::VectorPart part, const PoolVector& vector_of);

// Returns all parameters: those of gather_parts(), and otherwise those of the first pool. `memory`: tensors whose
// memory the result may take.
Tensors whole_tensors(const Replicas& replicas, const PoolVector& vector_of, Tensors memory = {});

// Sets each pool's vector_of(pool), [elements] or [trainable elements], to the tensors.
void to_device(const Replicas& replicas, std::size_t pool, std::span<const dataflow::NamedTensor> tensors,
               float* vector, dataflow::VectorPart part = dataflow::VectorPart::kAll);

}  // namespace arbalest::scheduler
