// The place of each parameter in a replica's flat vector: first the trainable segment, then the running statistics,
// then all frozen parameters, which training and averaging never touch.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dataflow/layers/layer.h"
#include "engine/base/element_range.h"
#include "engine/base/layout.h"
#include "engine/device.h"
#include "engine/passes/weight_update.h"

namespace arbalest::dataflow {

struct ParameterEntry {
  std::string name;         // "conv1.weight"
  ParameterSpec spec;       // canonical shape, initializer, multipliers
  engine::Layout native;    // layout in which the device reads it
  std::int64_t offset = 0;  // first element in the flat vector; set by ParameterLayout
};

// The values of a parameter in host memory, in canonical order.
struct NamedTensor {
  std::string name;
  engine::Shape shape;
  std::vector<float> values;
};

// The part of the parameters that a flat vector holds.
enum class VectorPart {
  kAll,       // [elements()]
  kTrainable  // [trainable_elements()], such as the optimizer's state
};

bool is_in(VectorPart part, const ParameterEntry& entry);

class ParameterLayout {
 public:
  ParameterLayout() = default;
  // Keeps the order of `entries`: each gets the next aligned offset of its segment.
  explicit ParameterLayout(std::vector<ParameterEntry> entries);

  const std::vector<ParameterEntry>& entries() const noexcept { return entries_; }
  // Elements of the flat vector, and of its segments; all include padding. moving_elements() is the sum of the first
  // two.
  std::int64_t elements() const noexcept { return elements_; }
  std::int64_t trainable_elements() const noexcept { return trainable_elements_; }
  std::int64_t statistic_elements() const noexcept { return moving_elements_ - trainable_elements_; }
  std::int64_t moving_elements() const noexcept { return moving_elements_; }
  std::int64_t frozen_elements() const noexcept { return elements_ - moving_elements_; }
  // Numbers without padding: parameters() counts all but the statistics, trained_parameters() those of them that are
  // not frozen, unpadded_elements() all. Parts of a split model's parameters count as the whole parameters.
  std::int64_t parameters() const noexcept;
  std::int64_t trained_parameters() const noexcept;
  std::int64_t unpadded_elements() const noexcept;
  // Ranges are contiguous and cover the first moving_elements(); neighbors with equal multipliers are merged.
  std::span<const engine::UpdateRange> update_ranges() const noexcept { return ranges_; }

  // The trainable elements that are parts of parameters: other devices have other elements there. Ascending.
  std::vector<engine::ElementRange> part_ranges() const;

  // All of these block the host. `weights`, `vector`: flat vectors on `device`; no work that writes them may be
  // pending.
  void initialize(engine::Device& device, std::uint64_t seed, float* weights) const;
  // Not for the layouts of split models: see dataflow/parameter_part.h. `memory`: tensors that the result takes
  // the place of, so that fewer pages are new to the process.
  std::vector<NamedTensor> to_canonical(engine::Device& device, const float* vector, VectorPart part = VectorPart::kAll,
                                        std::vector<NamedTensor> memory = {}) const;
  // Reads one parameter in canonical order. `values`: [elements].
  void read(engine::Device& device, const ParameterEntry& entry, const float* vector, std::span<float> values) const;
  // `tensors`: whole parameters, of which the vector gets its parts. Throws engine::ErrorKind::kCheckpoint if the
  // tensors are not exactly this layout's parameters of that part.
  void from_canonical(engine::Device& device, std::span<const NamedTensor> tensors, float* vector,
                      VectorPart part = VectorPart::kAll) const;

 private:
  enum class Segment { kTrainable, kStatistics, kFrozen };
  static Segment segment_of(const ParameterSpec& spec);
  // Sets the offsets of the segment's parameters.
  void place(Segment segment);
  void extend_ranges(const ParameterSpec& spec, std::int64_t end);

  std::vector<ParameterEntry> entries_;
  std::vector<engine::UpdateRange> ranges_;
  std::int64_t trainable_elements_ = 0;
  std::int64_t moving_elements_ = 0;
  std::int64_t elements_ = 0;
};

}  // namespace arbalest::dataflow
