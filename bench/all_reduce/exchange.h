// Sums a vector over ranks by a list of exchanges with other ranks. Textbook algorithms (algorithms.h) are such lists.
// So they run over the transport and on the thread that the product's all-reduce uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/process/operations/operation.h"

namespace arbalest::bench {

struct Part {
  std::size_t begin = 0;
  std::size_t size = 0;

  bool operator==(const Part&) const = default;
};

// A rank sends a part of its vector to one rank and receives a part from one rank, at the same time. The parts must not
// overlap. An empty part is not sent, so both ranks must know its size.
struct Exchange {
  int to = -1;  // -1: to none
  Part sent = {};
  int from = -1;  // -1: from none
  Part received = {};
  bool adds = false;  // the received numbers are added to the own ones; otherwise they replace them

  bool operator==(const Exchange&) const = default;
};

class ExchangeSum final : public engine::process::Operation {
 public:
  // Allocates room for the longest part that is added. May be started again when it is done. `values` must not be
  // touched from the start until done().
  ExchangeSum(std::span<float> values, std::vector<Exchange> exchanges);

  const char* name() const noexcept override { return "all-reduce"; }
  // An exchange begins when the one before has ended.
  void start(engine::process::Transport& transport, int channel) override;
  bool done() const noexcept override { return next_ == exchanges_.size() && open_ == 0; }
  bool waits_for(int peer) const noexcept override;
  void on_message(std::uint32_t token, std::size_t bytes) override;

 private:
  enum Kind : std::uint32_t { kSent = 1, kArrived = 2 };  // bits of open_

  const Exchange& current() const { return exchanges_[next_ - 1]; }
  std::span<float> part(const Part& part) const { return values_.subspan(part.begin, part.size); }
  void begin_next();

  const std::span<float> values_;
  const std::vector<Exchange> exchanges_;
  std::vector<float> addends_;
  engine::process::Transport* transport_ = nullptr;
  int channel_ = 0;
  std::size_t next_ = 0;    // number of exchanges that have begun
  std::uint32_t open_ = 0;  // messages of the current exchange that have not ended
};

}  // namespace arbalest::bench
