// Compares a value of all ranks. All ranks get the same answer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/process/operations/broadcast.h"
#include "engine/process/operations/gather.h"

namespace arbalest::engine::process {

class Agree final : public Operation {
 public:
  // `value` must stay valid until done().
  explicit Agree(std::string_view value) : gather_(value, [this] { compare(); }), broadcast_(answer_, 0) {}

  const char* name() const noexcept override { return "comparison"; }
  void start(Transport& transport, int channel) override;
  bool done() const noexcept override { return gather_.done() && broadcast_.done(); }
  bool waits_for(int peer) const noexcept override { return gather_.waits_for(peer) || broadcast_.waits_for(peer); }
  void on_message(std::uint32_t, std::size_t) override {}  // the transfers have the messages

  // Returns the ranks whose value is not that of rank 0, in order.
  std::vector<int> differing() const;

 private:
  void compare();

  Transport* transport_ = nullptr;
  int channel_ = 0;
  std::string answer_;  // 32-bit integers: the ranks that differ
  Gather gather_;
  Broadcast broadcast_;
};

}  // namespace arbalest::engine::process
