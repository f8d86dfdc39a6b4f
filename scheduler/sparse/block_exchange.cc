#include "scheduler/sparse/block_exchange.h"

#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "engine/base/error.h"
#include "scheduler/sparse/sum_in_pairs.h"

namespace arbalest::scheduler {

using engine::process::World;

namespace {

constexpr std::chrono::milliseconds kCheckPeriod(100);  // between two looks at the other processes, without a message

struct Header {
  std::uint64_t pass = 0;
  std::int64_t position = 0;
  std::uint64_t wants_stop = 0;
};

std::string pack(const Header& header, const std::vector<double>& numbers) {
  std::string bytes(sizeof header + numbers.size() * sizeof(double), '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  if (!numbers.empty()) {
    std::memcpy(bytes.data() + sizeof header, numbers.data(), numbers.size() * sizeof(double));
  }
  return bytes;
}

Header header_of(const std::string& bytes) {
  Header header;
  ARBALEST_CHECK(bytes.size() >= sizeof header);
  std::memcpy(&header, bytes.data(), sizeof header);
  return header;
}

std::vector<double> numbers_of(const std::string& bytes) {
  std::vector<double> numbers((bytes.size() - sizeof(Header)) / sizeof(double));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data() + sizeof(Header), numbers.size() * sizeof(double));
  return numbers;
}

}  // namespace

// Another process that begins block t has finished all blocks before t - max_delay, so this one has sent its sums of
// them, and has itself finished all blocks before t - 2 max_delay - 1. So a ring of 2 max_delay + 2 places suffices.
BlockExchange::BlockExchange(World* world, std::uint64_t pass, int max_delay)
    : world_(world != nullptr && world->size() > 1 ? world : nullptr), pass_(pass) {
  const std::size_t processes = world_ == nullptr ? 1 : static_cast<std::size_t>(world_->size());
  places_.assign(2 * (static_cast<std::size_t>(max_delay) + 1), std::vector<BlockSums>(processes));
  if (world_ == nullptr) return;
  rank_ = static_cast<std::size_t>(world_->rank());
  received_.resize(processes);
  world_->mailbox().on_arrival([this] { wake(); });
}

BlockExchange::~BlockExchange() {
  if (world_ == nullptr) return;
  world_->mailbox().await({});
  world_->mailbox().on_arrival({});
}

std::vector<BlockSums>& BlockExchange::place_of(std::int64_t position) {
  return places_[static_cast<std::size_t>(position) % places_.size()];
}

void BlockExchange::give(std::int64_t position, BlockSums sums) {
  if (world_ != nullptr) {
    const std::string message = pack({pass_, position, sums.wants_stop ? 1U : 0U}, sums.numbers);
    for (int rank = 0; rank < world_->size(); ++rank) {
      if (rank != world_->rank()) world_->mailbox().send(rank, message);
    }
  }
  place_of(position)[rank_] = std::move(sums);
  ++given_;
}

void BlockExchange::wake() {
  {
    const std::lock_guard lock(mutex_);
    is_awake_ = true;
  }
  woken_.notify_one();
}

bool BlockExchange::wait() {
  std::unique_lock lock(mutex_);
  const bool was_woken = woken_.wait_for(lock, kCheckPeriod, [this] { return is_awake_; });
  is_awake_ = false;
  return was_woken;
}

// Messages keep their order, and each process gives its sums block by block, or nearly so.
std::vector<int> BlockExchange::missing(std::int64_t position) const {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < received_.size() && given_ > position; ++rank) {
    if (rank != rank_ && received_[rank] <= position) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

std::optional<std::int64_t> BlockExchange::receive(std::int64_t finished) {
  std::optional<engine::process::Mailbox::Message> message = world_->mailbox().take();
  if (!message) {
    if (!wait()) {
      world_->check();
      world_->mailbox().await(missing(finished));
    }
    return std::nullopt;
  }
  const Header header = header_of(message->bytes);
  ARBALEST_CHECK(header.pass == pass_);
  ++received_[static_cast<std::size_t>(message->from)];
  place_of(header.position)[static_cast<std::size_t>(message->from)] = {numbers_of(message->bytes),
                                                                        header.wants_stop != 0};
  return header.position;
}

BlockSums BlockExchange::take_total(std::int64_t position) { return sum_in_pairs(place_of(position)); }

}  // namespace arbalest::scheduler
