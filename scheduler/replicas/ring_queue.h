// A first-in-first-out queue of fixed capacity that never allocates after its construction.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/base/error.h"

namespace arbalest::scheduler {

template <typename T>
class RingQueue {
 public:
  explicit RingQueue(std::size_t capacity) : items_(capacity) {}

  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }

  void push(const T& item) {
    ARBALEST_CHECK(size_ < items_.size());
    items_[(first_ + size_++) % items_.size()] = item;
  }
  T pop() {
    ARBALEST_CHECK(size_ > 0);
    const T item = items_[first_];
    first_ = (first_ + 1) % items_.size();
    --size_;
    return item;
  }

 private:
  std::vector<T> items_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

}  // namespace arbalest::scheduler
