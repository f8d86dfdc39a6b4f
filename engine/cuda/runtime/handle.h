// Owns one handle of CUDA's libraries: Handle<cudaStream_t, cudaStreamDestroy>.
#pragma once

#include <utility>

namespace arbalest::engine::cuda {

// The destructor ignores errors: an error of the device has been reported by then.
template <typename T, auto destroy>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T handle) noexcept : handle_(handle) {}
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      reset();
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  ~Handle() { reset(); }

  T get() const noexcept { return handle_; }
  // The caller must destroy the handle.
  T release() noexcept { return std::exchange(handle_, nullptr); }
  // Address for a call that creates a handle.
  T* put() noexcept {
    reset();
    return &handle_;
  }

 private:
  void reset() noexcept {
    if (handle_ != nullptr) static_cast<void>(destroy(handle_));
    handle_ = nullptr;
  }

  T handle_ = nullptr;
};

}  // namespace arbalest::engine::cuda
