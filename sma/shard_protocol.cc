#include "sma/shard_protocol.h"

#include <algorithm>
#include <utility>

#include "engine/base/error.h"

namespace arbalest::sma {

ShardProtocol::ShardProtocol(int process, int processes, ShardWork& work)
    : process_(static_cast<std::size_t>(process)), work_(work), peers_(static_cast<std::size_t>(processes)) {}

void ShardProtocol::restart(std::size_t first_learner, std::size_t learners, std::size_t all,
                            std::optional<int> bound) {
  ARBALEST_CHECK(!is_open_);
  first_ = first_learner;
  learners_ = learners;
  clocks_.restart(all, bound);
  idle_.restart(first_learner, learners);
  missing_.assign(learners, 0);
  granted_ = 0;
}

void ShardProtocol::open() {
  ARBALEST_CHECK(!is_open_);
  is_open_ = true;
  drains_ = false;
  has_told_ = false;
  for (Peer& peer : peers_) peer.is_drained = false;
  for (std::size_t peer = 0; peer < peers_.size(); ++peer) handle_held(peer);
}

void ShardProtocol::grant(int pushes) {
  granted_ += pushes;
  go_on();
}

void ShardProtocol::drain() {
  drains_ = true;
  end_if_drained();
}

void ShardProtocol::received(int from, ShardMessage message) {
  // A process that is drained itself still answers. An answer belongs to the phase of its pull, which has not ended.
  if (message.header().kind == MessageKind::kWeights) return handle(from, std::move(message));
  Peer& peer = peers_[static_cast<std::size_t>(from)];
  peer.held.push_back(std::move(message));
  handle_held(static_cast<std::size_t>(from));
}

void ShardProtocol::handle_held(std::size_t number) {
  Peer& peer = peers_[number];
  while (is_open_ && !peer.is_drained && !peer.held.empty()) {
    ShardMessage message = std::move(peer.held.front());
    peer.held.pop_front();
    handle(static_cast<int>(number), std::move(message));
  }
}

void ShardProtocol::handle(int from, ShardMessage message) {
  switch (message.header().kind) {
    case MessageKind::kPull:
      waiting_.push_back({message.header().learner, from});
      go_on();
      break;
    case MessageKind::kWeights: take_weights(from, message); break;
    case MessageKind::kPush:
      apply(std::move(message));
      go_on();
      break;
    case MessageKind::kDrained:
      peers_[static_cast<std::size_t>(from)].is_drained = true;
      end_if_drained();
      break;
  }
}

void ShardProtocol::apply(ShardMessage push) {
  const std::int64_t staleness = clocks_.complete(push.header().learner);
  work_.apply(std::move(push), staleness);
}

void ShardProtocol::go_on() {
  while (answer_one() || start_one()) {
  }
}

bool ShardProtocol::start_one() {
  if (granted_ == 0 || !work_.has_batches()) return false;
  const std::optional<std::size_t> idle = idle_.take(clocks_);
  if (!idle) return false;
  const std::size_t learner = *idle;
  --granted_;
  missing_[learner - first_] = peers_.size();
  work_.start(learner);
  for (std::size_t to = 0; to < peers_.size(); ++to) {
    if (to == process_) continue;
    work_.send(static_cast<int>(to),
               ShardMessage(MessageHeader{.kind = MessageKind::kPull, .learner = static_cast<std::uint32_t>(learner)}));
  }
  waiting_.push_back({learner, static_cast<int>(process_)});
  return true;
}

bool ShardProtocol::answer_one() {
  const auto first = std::ranges::find_if(waiting_, [&](const Pull& pull) { return clocks_.may_start(pull.learner); });
  if (first == waiting_.end()) return false;
  const Pull pull = *first;
  waiting_.erase(first);
  reading_.push_back(pull);
  clocks_.start(pull.learner);
  work_.read_weights(pull.learner);
  return true;
}

void ShardProtocol::weights_read(ShardMessage weights) {
  const auto pull = std::ranges::find(reading_, std::size_t{weights.header().learner}, &Pull::learner);
  ARBALEST_CHECK(pull != reading_.end());
  const int process = pull->process;
  reading_.erase(pull);
  if (process == static_cast<int>(process_)) {
    take_weights(process, weights);
  } else {
    work_.send(process, std::move(weights));
  }
}

void ShardProtocol::take_weights(int from, const ShardMessage& weights) {
  const std::size_t learner = weights.header().learner;
  ARBALEST_CHECK(is_here(learner) && missing_[learner - first_] > 0);
  work_.keep_weights(from, weights);
  if (--missing_[learner - first_] == 0) work_.compute(learner);
}

void ShardProtocol::computed(std::size_t learner) {
  for (std::size_t to = 0; to < peers_.size(); ++to) {
    ShardMessage push = work_.gradient(learner, static_cast<int>(to));
    if (to == process_) {
      apply(std::move(push));
    } else {
      work_.send(static_cast<int>(to), std::move(push));
    }
  }
  idle_.put(learner);
  go_on();
  end_if_drained();
}

// A learner that has nothing to do waits for weights, for the clock of a slower learner, or for the others' end. The
// first two may depend on any process, and one that waits itself is not late.
std::vector<int> ShardProtocol::awaited() const {
  if (!is_open_ || !reading_.empty()) return {};
  const auto pulling =
      static_cast<std::size_t>(std::ranges::count_if(missing_, [](std::size_t shards) { return shards > 0; }));
  if (idle_.size() + pulling < learners_) return {};
  std::vector<int> processes;
  for (std::size_t process = 0; process < peers_.size(); ++process) {
    const bool is_awaited = pulling > 0 || granted_ > 0 || (drains_ && !peers_[process].is_drained);
    if (process != process_ && is_awaited) processes.push_back(static_cast<int>(process));
  }
  return processes;
}

void ShardProtocol::end_if_drained() {
  if (!drains_ || !is_open_ || granted_ > 0 || idle_.size() < learners_) return;
  for (std::size_t to = 0; to < peers_.size() && !has_told_; ++to) {
    if (to != process_) work_.send(static_cast<int>(to), ShardMessage(MessageHeader{.kind = MessageKind::kDrained}));
  }
  has_told_ = true;
  const auto is_drained = [&](const Peer& peer) { return &peer == &peers_[process_] || peer.is_drained; };
  if (std::ranges::all_of(peers_, is_drained)) is_open_ = false;
}

}  // namespace arbalest::sma
