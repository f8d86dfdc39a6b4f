// Lets the transport's library sum a vector. It is measured beside ours, and a job may choose it. Its order of
// additions depends on the number of ranks, the length and the library's version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/process/operations/operation.h"

namespace arbalest::engine::process {

class LibraryAllReduce final : public Operation {
 public:
  // Allocates a copy of `values`: the library would choose a slower algorithm in place. May be started again when it is
  // done. All ranks must start these in the same order.
  explicit LibraryAllReduce(std::span<float> values) : values_(values), addends_(values.size()) {}

  const char* name() const noexcept override { return "all-reduce"; }
  void start(Transport& transport, int channel) override;
  bool done() const noexcept override { return open_ == 0; }
  bool waits_for(int) const noexcept override { return !done(); }
  void on_message(std::uint32_t, std::size_t) override { --open_; }

 private:
  const std::span<float> values_;
  std::vector<float> addends_;
  std::size_t open_ = 0;
};

}  // namespace arbalest::engine::process
