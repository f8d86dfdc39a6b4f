// Whole parameters and the parts of them that the devices of a split model have.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "dataflow/parameter_layout.h"
#include "engine/process/world.h"

namespace arbalest::dataflow {

// Returns the part `spec` of the whole parameter. Both are in canonical order.
std::vector<float> take_part(const ParameterSpec& spec, std::span<const float> whole);

// A flat vector on a device.
struct DeviceVector {
  const ParameterLayout* layout = nullptr;
  engine::Device* device = nullptr;
  const float* vector = nullptr;
};

// Returns the split parameters of `part` as whole tensors. `vectors`: those of this process's devices, in order of
// their ranks. Blocks the host; no work that writes the vectors may be pending. A call of World's operations if the
// model is split over the devices of `world`; otherwise there are no such parameters, and no other process is needed.
std::vector<NamedTensor> gather_parts(std::span<const DeviceVector> vectors, VectorPart part,
                                      engine::process::World& world);
// Upper bound of the host memory that gather_parts() takes for all parameters, with its result.
std::size_t gather_bytes(const ParameterLayout& layout);

// Returns the whole tensors of a model: those of `gathered`, and of the vector where no tensor is split. Blocks like
// gather_parts(). `memory`: tensors that the result takes the place of.
std::vector<NamedTensor> whole_tensors(const DeviceVector& own, VectorPart part, std::span<const NamedTensor> gathered,
                                       std::vector<NamedTensor> memory = {});

}  // namespace arbalest::dataflow
