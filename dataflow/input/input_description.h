// The tensors that an example of a dataset consists of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/dtype.h"
#include "engine/base/shape.h"

namespace arbalest::dataflow {

// A tensor that every example has.
struct TensorDescription {
  std::string name;  // as the layers of a job file read it
  engine::DType dtype = engine::DType::kFloat32;
  engine::Shape shape;  // of one example, without batch dimension; rank 0: a single value
  // Integers: element i is in [0, limits[i]). One limit holds for all elements. Empty for floating point.
  std::vector<std::int64_t> limits = {};

  std::size_t bytes() const noexcept;  // of one example
  // The limit of element `element`.
  std::int64_t limit(std::int64_t element) const;

  bool operator==(const TensorDescription&) const = default;
};

// The tensors in the order in which datasets write them and batches hold them. A new kind of input is a new list of
// tensors: rings, copies, plans and graphs handle any list.
struct InputDescription {
  // Names of tensors.
  static constexpr const char* kImage = "image";
  static constexpr const char* kIds = "ids";
  static constexpr const char* kLabel = "label";

  // The last tensor is the label, a class or a number. No tensors: the data are unknown.
  std::vector<TensorDescription> tensors;

  bool is_known() const noexcept { return !tensors.empty(); }
  // All tensors but the label.
  std::span<const TensorDescription> features() const noexcept;
  // The only feature. Throws kInternal if there are several.
  const TensorDescription& only_feature() const;
  const TensorDescription& label() const;
  // Bytes of the features of one example.
  std::size_t feature_bytes() const noexcept;

  // Returns null if no tensor has the name.
  const TensorDescription* find(std::string_view name) const noexcept;
  bool has_ids() const noexcept { return find(kIds) != nullptr; }
  // Number of distinct ids, by column; empty if the examples have none.
  std::span<const std::int64_t> ids() const noexcept;
  // Shape of the images, [c, h, w]. Throws kInternal if the examples have none.
  const engine::Shape& image() const;

  // Whether labels are numbers instead of classes.
  bool predicts_numbers() const noexcept;
  // Labels are in [0, classes()). 1 if labels are numbers, 0 if the data are unknown.
  std::int64_t classes() const noexcept;

  bool operator==(const InputDescription&) const = default;
};

// Images [c, h, w] with classes.
InputDescription image_input(const engine::Shape& image, std::int64_t classes);

// Ids, such as those of a user and an item, with a number to be predicted. `ids`: number of distinct ids, by column.
InputDescription ratings_input(std::vector<std::int64_t> ids);

}  // namespace arbalest::dataflow
