#include "scheduler/shards/sharded_pushes.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "engine/base/error.h"
#include "engine/waiting.h"

namespace arbalest::scheduler {

using engine::StepParameters;
using learners::Learner;
using learners::Ticket;
using sma::MessageHeader;
using sma::MessageKind;
using sma::ShardMessage;

namespace {

constexpr double kCheckSeconds = 0.1;  // between two looks at the other processes, without any event

std::size_t bytes_of(std::int64_t elements) { return static_cast<std::size_t>(elements) * sizeof(float); }

}  // namespace

// Each learner takes five vectors: its staging buffer, the weights that it receives, the gradients that it sends, and
// at the servers the gradients that they receive and the weights that they send. The servers' shards add up to one
// vector.
std::size_t ShardedPushes::host_bytes(int learners, const sma::CentralSizes& sizes) {
  constexpr std::size_t kVectors = 5;
  return kVectors * static_cast<std::size_t>(learners) * bytes_of(sizes.elements + sizes.frozen);
}

ShardedPushes::ShardedPushes(const Replicas& replicas, sma::Synchronizer& synchronizer, const sma::Options& options,
                             Calls calls)
    : world_(replicas.world()),
      calls_(std::move(calls)),
      synchronizer_(synchronizer),
      options_(options),
      first_(static_cast<std::size_t>(replicas.share().first)),
      protocol_(world_.rank(), world_.size(), *this),
      own_(replicas.size()),
      served_(static_cast<std::size_t>(replicas.share().all)) {
  const sma::CentralSizes& sizes = shards().whole();
  engine::Device& device = replicas.pool(0).device();  // that of the server
  for (std::size_t j = 0; j < own_.size(); ++j) {
    own_[j].team = &replicas.team_of(j);
    own_[j].learner = &replicas[j];
    own_[j].staging = device.allocate_host(bytes_of(sizes.elements + sizes.frozen));
    own_[j].scale = device.allocate_host(sizeof(float));
  }
  protocol_.restart(first_, own_.size(), served_.size(), options.staleness);
  world_.mailbox().on_arrival([this] { completions_.add(kWake); });
  completions_.add(kWake);  // other processes may have sent messages before
}

ShardedPushes::~ShardedPushes() {
  stop();
  world_.mailbox().await({});
  world_.mailbox().on_arrival({});
}

void ShardedPushes::advance(dataflow::BatchRing& ring, const StepParameters& step) {
  std::unique_lock lock(mutex_);
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& error) {
      engine::fail(engine::ErrorKind::kOutOfMemory,
                   "cannot start the thread of the parameter server: {}; look at 'ulimit -u' and at pids.max",
                   error.code().message());
    }
  }
  if (failure_) std::rethrow_exception(failure_);
  ring_ = &ring;
  grants_.push_back({step, own_.size()});
  if (!protocol_.is_open()) protocol_.open();
  protocol_.grant(static_cast<int>(own_.size()));
  wait_until(lock, [this] { return protocol_.granted() == 0; });
}

// The thread awaits the others' messages meanwhile (ShardProtocol::awaited), so one that hangs is named.
void ShardedPushes::drain() {
  std::unique_lock lock(mutex_);
  if (!protocol_.is_open() && applying_ == 0) return;
  protocol_.drain();
  wait_until(lock, [this] { return protocol_.is_drained() && applying_ == 0; });
}

Progress ShardedPushes::take_results() {
  const std::lock_guard lock(mutex_);
  return std::exchange(results_, {});
}

template <typename Condition>
void ShardedPushes::wait_until(std::unique_lock<std::mutex>& lock, const Condition& condition) {
  changed_.wait(lock, [&] { return failure_ != nullptr || condition(); });
  if (failure_) std::rethrow_exception(failure_);
}

void ShardedPushes::abandon() noexcept {
  const bool are_under_way = [&] {
    const std::lock_guard lock(mutex_);
    return protocol_.is_open() || applying_ > 0;
  }();
  if (are_under_way) stop();
}

void ShardedPushes::stop() noexcept {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  completions_.add(kWake);
  thread_.join();
  stops_ = false;
}

void ShardedPushes::run() {
  for (;;) {
    const std::optional<std::uint64_t> value = completions_.take_within(kCheckSeconds);
    const std::lock_guard lock(mutex_);
    if (stops_) return;
    try {
      if (!value) {
        world_.check();
        world_.mailbox().await(protocol_.awaited());
      }
      if (value) handle(*value);
    } catch (...) {
      fail_here();
    }
    changed_.notify_all();
    if (failure_) return;
  }
}

// The other processes must not wait for this one's shard, nor its scheduler's thread for them.
void ShardedPushes::fail_here() noexcept {
  failure_ = std::current_exception();
  try {
    throw;
  } catch (const engine::Error& error) {
    world_.announce_failure(error);
  } catch (const std::bad_alloc&) {
    world_.announce_failure({engine::ErrorKind::kOutOfMemory, "out of host memory for the messages of async_sgd"});
  } catch (const std::exception& error) {
    world_.announce_failure({engine::ErrorKind::kInternal, error.what()});
  }
}

void ShardedPushes::handle(std::uint64_t value) {
  const auto number = static_cast<std::size_t>(value & ((std::uint64_t{1} << kEventShift) - 1));
  switch (static_cast<Event>(value >> kEventShift)) {
    case kWake: take_messages(); break;
    case kComputed: finish_computed(number); break;
    case kWeightsRead:
      engine::wait_for(served_[number].weights_read);  // throws the error of the stream
      protocol_.weights_read(std::move(served_[number].weights));
      break;
    case kApplied: finish_applied(number); break;
  }
}

void ShardedPushes::take_messages() {
  while (auto message = world_.mailbox().take()) {
    protocol_.received(message->from, ShardMessage(std::move(message->bytes)));
  }
}

void ShardedPushes::report(engine::Stream& stream, Event event, std::size_t number) {
  stream.report(completions_, static_cast<std::uint64_t>(event) << kEventShift | number);
}

bool ShardedPushes::has_batches() { return ring_->can_hand_out(options_.period); }

void ShardedPushes::start(std::size_t learner) {
  Own& of = own(learner);
  of.step = grants_.front().step;
  if (--grants_.front().pushes == 0) grants_.pop_front();
  of.batches.clear();
  for (int i = 0; i < options_.period; ++i) {
    const auto batch = ring_->next();
    ARBALEST_CHECK(batch.has_value());  // training batches never end
    of.batches.push_back(*batch);
  }
}

void ShardedPushes::keep_weights(int from, const ShardMessage& weights) {
  const engine::ElementRange shard = shards().of(from);
  ARBALEST_CHECK(static_cast<std::int64_t>(weights.elements().size()) == shard.elements());
  std::ranges::copy(weights.elements(), own(weights.header().learner).staging.as<float>() + shard.begin);
}

void ShardedPushes::compute(std::size_t number) {
  Own& of = own(number);
  learners::Team& team = *of.team;
  Learner& learner = *of.learner;
  const sma::CentralSizes& sizes = shards().whole();
  auto* staging = of.staging.as<float>();
  engine::Stream& stream = learner.stream();
  if (sizes.frozen > 0) {  // a learner gets them with the weights, and nobody changes them
    stream.copy(staging + sizes.elements, learner.weights() + sizes.elements, bytes_of(sizes.frozen),
                "copy of frozen parameters");
  }
  team.pull(staging, {});
  of.tasks.clear();
  for (std::size_t i = 0; i < of.batches.size(); ++i) {
    Ticket& task = of.tasks.emplace_back();
    team.gradient({&of.batches[i], 1}, of.step, {&task, 1});
    i + 1 < of.batches.size() ? team.update({&task, 1}, {}) : team.push(task);
  }
  const std::int64_t trainable = sizes.trainable();
  stream.copy(staging, team.pushed(options_.period), bytes_of(trainable), "copy of the gradient");
  if (sizes.statistics > 0) {
    stream.copy(staging + trainable, learner.gradient() + trainable, bytes_of(sizes.statistics), "copy of statistics");
  }
  if (const float* scale = team.gradient_scale(options_.period)) {
    stream.copy(of.scale.data(), scale, sizeof(float), "copy of the gradient's scale");
  } else {
    *of.scale.as<float>() = 1.0F;
  }
  report(stream, kComputed, number - first_);
}

void ShardedPushes::finish_computed(std::size_t number) {
  Own& of = own_[number];
  for (const Ticket& task : of.tasks) calls_.take_result(task, number, *ring_, results_);
  protocol_.computed(first_ + number);
}

ShardMessage ShardedPushes::gradient(std::size_t learner, int to) {
  Own& of = own(learner);
  const engine::ElementRange shard = shards().of(to);
  ShardMessage push({.kind = MessageKind::kPush,
                     .learner = static_cast<std::uint32_t>(learner),
                     .learning_rate = of.step.learning_rate,
                     .gradient_scale = *of.scale.as<float>(),
                     .mini_batch = of.tasks.back().task},
                    static_cast<std::size_t>(shard.elements()));
  std::copy_n(of.staging.as<float>() + shard.begin, shard.elements(), push.elements().begin());
  return push;
}

void ShardedPushes::read_weights(std::size_t learner) {
  Served& of = served_[learner];
  const engine::ElementRange shard = shards().of(world_.rank());
  of.weights = ShardMessage({.kind = MessageKind::kWeights, .learner = static_cast<std::uint32_t>(learner)},
                            static_cast<std::size_t>(shard.elements()));
  engine::Stream& stream = synchronizer_.central().stream(0);
  stream.copy(of.weights.elements().data(), synchronizer_.central().present(0) + shard.begin,
              bytes_of(shard.elements()), "weights for a learner");
  of.weights_read = stream.record();
  report(stream, kWeightsRead, learner);
}

void ShardedPushes::apply(ShardMessage push, std::int64_t staleness) {
  const MessageHeader header = push.header();
  Served& of = served_[header.learner];
  of.push = std::move(push);
  of.scale = header.gradient_scale;
  const float* gradient = of.push.elements().data();
  of.applied =
      synchronizer_.server().push({.learner = header.learner,
                                   .gradient = gradient,
                                   .statistics = gradient,
                                   .gradient_scale = &of.scale,
                                   .is_elsewhere = true,
                                   .learning_rate = sma::rate_of_push(options_, header.learning_rate, staleness)});
  ++applying_;
  report(synchronizer_.central().stream(0), kApplied, header.learner);
  const bool is_own = header.learner >= first_ && header.learner < first_ + own_.size();
  if (is_own) ++results_.staleness[staleness];
}

void ShardedPushes::finish_applied(std::size_t learner) {
  Served& of = served_[learner];
  engine::wait_for(of.applied);  // throws the error of the stream
  --applying_;
  const std::int32_t refused = synchronizer_.server().refused(learner);
  if (refused != 0) calls_.report_refused(static_cast<std::uint32_t>(learner), of.push.header().mini_batch, refused);
  of.push = {};
}

void ShardedPushes::send(int to, ShardMessage message) { world_.mailbox().send(to, message.take_bytes()); }

}  // namespace arbalest::scheduler
