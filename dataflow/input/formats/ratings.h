// Reads ratings from two NumPy .npy files: ids, such as those of a user and an item, and a number to predict from them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dataflow/input/dataset.h"
#include "engine/host/memory_budget.h"

namespace arbalest::dataflow {

class Ratings final : public Dataset {
 public:
  // `description`: as ratings_input() makes it. `ids`: [n, columns], each below the description's number of ids;
  // `targets`: [n], finite.
  Ratings(std::string name, InputDescription description, std::vector<std::int32_t> ids, std::vector<float> targets);

  // Moves the ratings with these numbers, which must ascend, into a new dataset. The remaining ratings close up.
  std::unique_ptr<Ratings> split_off(std::string name, std::span<const std::int64_t> ratings);

  const std::string& name() const noexcept override { return name_; }
  const InputDescription& description() const noexcept override { return description_; }
  std::int64_t size() const noexcept override { return static_cast<std::int64_t>(targets_.size()); }

  void read(std::int64_t example, const ExamplePosition& position,
            std::span<const InputTensor> features) const override;
  void read_label(std::int64_t example, const InputTensor& label) const override;
  std::size_t memory_bytes() const noexcept override;

 private:
  std::string name_;
  InputDescription description_;
  std::vector<std::int32_t> ids_;
  std::vector<float> targets_;
};

struct RatingsSource {
  std::string name;
  std::filesystem::path ids;      // integers of any size [n, columns]
  std::filesystem::path targets;  // float32 or float64 [n]
  InputDescription expected;
  engine::host::MemoryBudget budget{};
};

// Throws as load_npy does. For ids out of range and targets that are not finite, the error also names
// the record.
std::unique_ptr<Ratings> load_ratings(const RatingsSource& source);

}  // namespace arbalest::dataflow
