#include "dataflow/parameter_layout.h"

#include <algorithm>

#include "dataflow/expected_tensors.h"
#include "dataflow/parameter_part.h"
#include "engine/base/alignment.h"
#include "engine/base/error.h"

namespace arbalest::dataflow {

namespace {

// Elements that a parameter takes in the flat vector.
std::int64_t aligned_elements(const engine::Layout& native) {
  return static_cast<std::int64_t>(engine::aligned(native.bytes()) / sizeof(float));
}

}  // namespace

ParameterLayout::ParameterLayout(std::vector<ParameterEntry> entries) : entries_(std::move(entries)) {
  place(Segment::kTrainable);
  trainable_elements_ = elements_;
  place(Segment::kStatistics);
  moving_elements_ = elements_;
  place(Segment::kFrozen);
}

ParameterLayout::Segment ParameterLayout::segment_of(const ParameterSpec& spec) {
  if (spec.is_frozen) return Segment::kFrozen;
  return spec.is_statistic() ? Segment::kStatistics : Segment::kTrainable;
}

void ParameterLayout::place(Segment segment) {
  for (ParameterEntry& entry : entries_) {
    if (segment_of(entry.spec) != segment) continue;
    const engine::Layout& native = entry.native;
    ARBALEST_CHECK(native.dtype() == engine::DType::kFloat32 &&
                   native.shape().elements() == entry.spec.shape.elements());
    entry.offset = elements_;
    const std::int64_t end = elements_ + aligned_elements(native);
    if (segment != Segment::kFrozen) extend_ranges(entry.spec, end);
    elements_ = end;
  }
}

void ParameterLayout::extend_ranges(const ParameterSpec& spec, std::int64_t end) {
  ARBALEST_CHECK(spec.is_statistic() == (spec.statistic_momentum > 0.0F));
  const engine::UpdateRange range{.begin = elements_,
                                  .end = end,
                                  .learning_rate_multiplier = spec.learning_rate_multiplier,
                                  .decay_multiplier = spec.decay_multiplier,
                                  .statistic_momentum = spec.statistic_momentum};
  const bool continues = !ranges_.empty() &&
                         ranges_.back().learning_rate_multiplier == range.learning_rate_multiplier &&
                         ranges_.back().decay_multiplier == range.decay_multiplier &&
                         ranges_.back().statistic_momentum == range.statistic_momentum;
  if (continues) {
    ranges_.back().end = end;
  } else {
    ranges_.push_back(range);
  }
}

std::int64_t ParameterLayout::parameters() const noexcept {
  std::int64_t count = 0;
  for (const ParameterEntry& entry : entries_) {
    if (!entry.spec.is_statistic()) count += entry.spec.whole_shape().elements();
  }
  return count;
}

std::int64_t ParameterLayout::trained_parameters() const noexcept {
  std::int64_t count = 0;
  for (const ParameterEntry& entry : entries_) {
    if (entry.spec.is_trained()) count += entry.spec.whole_shape().elements();
  }
  return count;
}

std::int64_t ParameterLayout::unpadded_elements() const noexcept {
  std::int64_t count = 0;
  for (const ParameterEntry& entry : entries_) count += entry.spec.whole_shape().elements();
  return count;
}

std::vector<engine::ElementRange> ParameterLayout::part_ranges() const {
  std::vector<engine::ElementRange> ranges;
  for (const ParameterEntry& entry : entries_) {
    if (!entry.spec.part || !entry.spec.is_trained()) continue;
    const std::int64_t end = entry.offset + aligned_elements(entry.native);
    if (!ranges.empty() && ranges.back().end == entry.offset) {
      ranges.back().end = end;
    } else {
      ranges.push_back({entry.offset, end});
    }
  }
  return ranges;
}

namespace {

// Sets a parameter, or the part of it that the entry stands for.
void set(engine::Device& device, const ParameterEntry& entry, const std::vector<float>& whole, float* vector) {
  const engine::Layout plain = device.plain_layout(entry.spec.shape, engine::DType::kFloat32);
  const std::vector<float> part = entry.spec.part ? take_part(entry.spec, whole) : std::vector<float>{};
  device.convert(plain, entry.spec.part ? part.data() : whole.data(), entry.native, vector + entry.offset);
}

}  // namespace

void ParameterLayout::initialize(engine::Device& device, std::uint64_t seed, float* weights) const {
  std::uint32_t index = 0;
  for (const ParameterEntry& entry : entries_) {
    std::vector<float> values(static_cast<std::size_t>(entry.spec.whole_shape().elements()));
    dataflow::initialize(entry.spec.initializer, entry.spec.fan, seed, index++, values);
    set(device, entry, values, weights);
  }
}

bool is_in(VectorPart part, const ParameterEntry& entry) { return part == VectorPart::kAll || entry.spec.is_trained(); }

void ParameterLayout::read(engine::Device& device, const ParameterEntry& entry, const float* vector,
                           std::span<float> values) const {
  const engine::Layout plain = device.plain_layout(entry.spec.shape, engine::DType::kFloat32);
  device.convert(entry.native, vector + entry.offset, plain, values.data());
}

std::vector<NamedTensor> ParameterLayout::to_canonical(engine::Device& device, const float* vector, VectorPart part,
                                                       std::vector<NamedTensor> memory) const {
  return whole_tensors({this, &device, vector}, part, {}, std::move(memory));
}

void ParameterLayout::from_canonical(engine::Device& device, std::span<const NamedTensor> tensors, float* vector,
                                     VectorPart part) const {
  std::vector<ExpectedTensor> expected;
  for (const ParameterEntry& entry : entries_) {
    if (is_in(part, entry)) expected.push_back({entry.name, entry.spec.whole_shape()});
  }
  check_tensors(tensors, expected);
  for (const ParameterEntry& entry : entries_) {
    if (!is_in(part, entry)) continue;
    set(device, entry, std::ranges::find(tensors, entry.name, &NamedTensor::name)->values, vector);
  }
}

}  // namespace arbalest::dataflow
