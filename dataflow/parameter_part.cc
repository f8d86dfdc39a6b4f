#include "dataflow/parameter_part.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "engine/base/error.h"
#include "engine/process/all_gather.h"

namespace arbalest::dataflow {

namespace {

// Calls copy(offset in the part, offset in the whole, count) for the contiguous runs of the part.
template <typename Copy>
void for_each_run(const ParameterSpec& spec, const Copy& copy) {
  const ParameterPart& part = *spec.part;
  const std::int64_t extent = spec.shape[part.axis];
  const std::int64_t outer = part.axis == 0 ? 1 : spec.shape[0];
  const std::int64_t inner = spec.shape.elements() / (outer * extent);
  for (std::int64_t run = 0; run < outer; ++run) {
    copy(run * extent * inner, (run * part.whole[part.axis] + part.first) * inner, extent * inner);
  }
}

// Writes the part `spec` of the whole parameter, in canonical order.
void put_part(const ParameterSpec& spec, std::span<const float> part, std::span<float> whole) {
  for_each_run(spec, [&](std::int64_t from, std::int64_t to, std::int64_t count) {
    std::copy_n(part.begin() + from, count, whole.begin() + to);
  });
}

// The bytes of a device's part, in canonical order.
std::string read_part(const DeviceVector& of, const ParameterEntry& entry) {
  std::vector<float> values(static_cast<std::size_t>(entry.spec.shape.elements()));
  of.layout->read(*of.device, entry, of.vector, values);
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// Writes the parts of all devices, process by process. `spec`: that of any part.
void put_parts(ParameterSpec spec, const std::vector<std::string>& processes, std::span<float> whole) {
  const std::size_t bytes = static_cast<std::size_t>(spec.shape.elements()) * sizeof(float);
  std::vector<float> values(static_cast<std::size_t>(spec.shape.elements()));
  spec.part->first = 0;
  for (const std::string& parts : processes) {
    for (std::size_t begin = 0; begin < parts.size(); begin += bytes) {
      ARBALEST_CHECK(begin + bytes <= parts.size());
      std::memcpy(values.data(), parts.data() + begin, bytes);
      put_part(spec, values, whole);
      spec.part->first += spec.shape[spec.part->axis];
    }
  }
  ARBALEST_CHECK(spec.part->first == spec.part->whole[spec.part->axis]);
}

}  // namespace

std::vector<float> take_part(const ParameterSpec& spec, std::span<const float> whole) {
  std::vector<float> part(static_cast<std::size_t>(spec.shape.elements()));
  for_each_run(spec, [&](std::int64_t to, std::int64_t from, std::int64_t count) {
    std::copy_n(whole.begin() + from, count, part.begin() + to);
  });
  return part;
}

std::vector<NamedTensor> gather_parts(std::span<const DeviceVector> vectors, VectorPart part,
                                      engine::process::World& world) {
  std::vector<NamedTensor> tensors;
  for (std::size_t e = 0; e < vectors.front().layout->entries().size(); ++e) {
    const ParameterEntry& entry = vectors.front().layout->entries()[e];
    if (!is_in(part, entry) || !entry.spec.part) continue;
    std::string own;
    for (const DeviceVector& of : vectors) own += read_part(of, of.layout->entries()[e]);
    NamedTensor& tensor = tensors.emplace_back(NamedTensor{entry.name, entry.spec.whole_shape(), {}});
    tensor.values.resize(static_cast<std::size_t>(tensor.shape.elements()));
    put_parts(entry.spec, engine::process::all_gather(world, own), tensor.values);
  }
  return tensors;
}

std::size_t gather_bytes(const ParameterLayout& layout) {
  constexpr std::int64_t kCopies = 4;  // this process's parts, those of all as they arrive, in one message, and apart
  std::int64_t all = 0;
  std::int64_t largest = 0;
  for (const ParameterEntry& entry : layout.entries()) {
    if (!entry.spec.part) continue;
    const std::int64_t numbers = entry.spec.whole_shape().elements();
    all += numbers;
    largest = std::max(largest, numbers);
  }
  return static_cast<std::size_t>(all + kCopies * largest) * sizeof(float);
}

std::vector<NamedTensor> whole_tensors(const DeviceVector& own, VectorPart part, std::span<const NamedTensor> gathered,
                                       std::vector<NamedTensor> memory) {
  std::vector<NamedTensor> tensors = std::move(memory);
  std::size_t count = 0;
  std::size_t taken = 0;
  for (const ParameterEntry& entry : own.layout->entries()) {
    if (!is_in(part, entry)) continue;
    if (count == tensors.size()) tensors.emplace_back();
    NamedTensor& tensor = tensors[count++];
    if (entry.spec.part) {
      ARBALEST_CHECK(taken < gathered.size());
      tensor = gathered[taken++];
      continue;
    }
    tensor.name = entry.name;
    tensor.shape = entry.spec.shape;
    tensor.values.resize(static_cast<std::size_t>(tensor.shape.elements()));
    own.layout->read(*own.device, entry, own.vector, tensor.values);
  }
  tensors.resize(count);
  return tensors;
}

}  // namespace arbalest::dataflow
