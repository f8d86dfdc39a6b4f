// A block of memory with one owner, which frees it.
#pragma once

#include <cstddef>
#include <utility>

namespace arbalest::engine {

class Buffer {
 public:
  using Release = void (*)(void* data, std::size_t bytes) noexcept;

  Buffer() = default;
  Buffer(void* data, std::size_t bytes, Release release) noexcept : data_(data), bytes_(bytes), release_(release) {}
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)), release_(other.release_) {}
  Buffer& operator=(Buffer&& other) noexcept {
    if (this != &other) {
      reset();
      data_ = std::exchange(other.data_, nullptr);
      bytes_ = std::exchange(other.bytes_, 0);
      release_ = other.release_;
    }
    return *this;
  }
  ~Buffer() { reset(); }

  void* data() const noexcept { return data_; }
  template <typename T>
  T* as() const noexcept {
    return static_cast<T*>(data_);
  }

 private:
  void reset() noexcept {
    if (data_ != nullptr) release_(data_, bytes_);
    data_ = nullptr;
    bytes_ = 0;
  }

  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  Release release_ = nullptr;
};

}  // namespace arbalest::engine
