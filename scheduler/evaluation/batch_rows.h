// Results of mini-batches that all processes of a run compute, each its share, and that all add up in one order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/process/world.h"

namespace arbalest::scheduler {

// Sums over mini-batches depend on the order of additions. So every process takes the rows of all of them, in the order
// of their numbers, and all get the same bits, whatever the number of processes. A single process stores nothing.
class BatchRows {
 public:
  using Row = std::span<const std::byte>;

  // `take` is called with each row, of `row_bytes` bytes. `world` must outlive the rows.
  BatchRows(engine::process::World& world, std::size_t row_bytes, std::function<void(Row)> take);

  // Adds the row of a mini-batch of this process, in ascending order of the numbers.
  void add(std::uint64_t number, Row row);
  // Call once at the end, on all processes.
  void finish();

 private:
  engine::process::World& world_;
  std::size_t row_bytes_;
  std::function<void(Row)> take_;
  std::string stored_;  // number and row of each mini-batch of this process
};

}  // namespace arbalest::scheduler
