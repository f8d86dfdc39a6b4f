// Layout of a tensor in a device's memory. The shape is logical (canonical order: images [n, c, h, w], convolution
// weights [out, in, h, w]); the device chooses the order and padding of the elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/base/dtype.h"
#include "engine/base/shape.h"

namespace arbalest::engine {

// The device's own description of a layout, beyond its shape (such as oneDNN's memory descriptor).
class NativeLayout {
 public:
  virtual ~NativeLayout() = default;
  virtual bool equals(const NativeLayout& other) const = 0;
  // The numbers that tell this layout from others of its shape and type (Device::layout_of).
  virtual std::vector<std::int64_t> numbers() const = 0;
};

class Layout {
 public:
  Layout() = default;
  Layout(Shape shape, DType dtype, std::size_t bytes, std::shared_ptr<const NativeLayout> native)
      : shape_(shape), dtype_(dtype), bytes_(bytes), native_(std::move(native)) {}

  const Shape& shape() const noexcept { return shape_; }
  DType dtype() const noexcept { return dtype_; }
  // Size of the buffer, padding included. Padding elements are zero and stay zero.
  std::size_t bytes() const noexcept { return bytes_; }
  const NativeLayout* native() const noexcept { return native_.get(); }

  bool operator==(const Layout& other) const {
    return shape_ == other.shape_ && dtype_ == other.dtype_ && bytes_ == other.bytes_ &&
           (native_ == other.native_ || (native_ && other.native_ && native_->equals(*other.native_)));
  }

 private:
  Shape shape_;
  DType dtype_ = DType::kFloat32;
  std::size_t bytes_ = 0;
  std::shared_ptr<const NativeLayout> native_;
};

}  // namespace arbalest::engine
