// A tensor of an example or of a mini-batch in host memory that somebody else owns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "dataflow/input/input_description.h"
#include "engine/base/error.h"

namespace arbalest::dataflow {

// Element type of a C++ type.
template <typename T>
constexpr engine::DType dtype_of() {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, std::int32_t>);
  return std::is_same_v<T, float> ? engine::DType::kFloat32 : engine::DType::kInt32;
}

class InputTensor {
 public:
  // `data`: [examples, ...] with the description's shape, aligned to the elements. Description and data must outlive
  // the tensor.
  InputTensor(const TensorDescription& description, void* data, std::size_t examples = 1)
      : description_(&description),
        data_(static_cast<std::byte*>(data)),
        example_bytes_(description.bytes()),
        examples_(examples) {}

  const TensorDescription& description() const noexcept { return *description_; }
  std::span<std::byte> bytes() const noexcept { return {data_, examples_ * example_bytes_}; }
  // The elements of all examples. T is float or std::int32_t, or one of them as const. Throws kInternal if the elements
  // are of another type.
  template <typename T>
  std::span<T> as() const {
    ARBALEST_CHECK(description_->dtype == dtype_of<std::remove_const_t<T>>());
    return {reinterpret_cast<T*>(data_), bytes().size() / sizeof(T)};
  }
  // The tensor of one example.
  InputTensor row(std::size_t example) const {
    InputTensor row = *this;
    row.data_ += example * example_bytes_;
    row.examples_ = 1;
    return row;
  }

 private:
  const TensorDescription* description_;
  std::byte* data_;
  std::size_t example_bytes_;
  std::size_t examples_;
};

}  // namespace arbalest::dataflow
