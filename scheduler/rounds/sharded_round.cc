#include "scheduler/rounds/sharded_round.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "scheduler/shards/gather_shards.h"

namespace arbalest::scheduler {

using learners::Learner;

namespace {

ShardedPushes::Calls calls_of(Results& results) {
  return {.take_result =
              [&results](const learners::Ticket& ticket, std::size_t learner, dataflow::BatchRing& ring,
                         Progress& progress) {
                results.take({ticket, learner, &ring}, progress);
              },
          .report_refused =
              [&results](std::uint32_t learner, std::uint64_t mini_batch, std::int32_t refused) {
                results.report_refused(fmt::format("learner {}", learner), mini_batch, refused);
              }};
}

}  // namespace

ShardedRound::ShardedRound(const sma::Options& options, const RoundContext& context)
    : PushedRound(options, context), pushes_(replicas(), synchronizer(), this->options(), calls_of(results())) {}

IterationEnd ShardedRound::enqueue(dataflow::BatchRing& ring, Progress& progress) {
  is_complete_ = false;
  pushes_.advance(ring, clock().step());
  const auto pushes = static_cast<std::uint64_t>(learners());
  clock().count(pushes * static_cast<std::uint64_t>(options().period));
  progress.add(pushes_.take_results());
  return {.rounds = pushes};
}

std::uint64_t ShardedRound::drain(Progress& progress) {
  pushes_.drain();
  progress.add(pushes_.take_results());
  return 0;  // they were counted when they started
}

void ShardedRound::complete_weights() {
  if (std::exchange(is_complete_, true)) return;
  const sma::Shards& shards = synchronizer().shards();
  float* weights = central().present(0);
  gather_shards(replicas().world(), central().stream(0), shards, VectorElements::kAll,
                weights + shards.of(replicas().world().rank()).begin, weights);
}

std::optional<sma::AveragingTicket> ShardedRound::gather() {
  complete_weights();
  return std::nullopt;
}

void ShardedRound::hand_out_state() {
  complete_weights();
  const dataflow::ParameterLayout& layout = replicas().pool(0).training_plan().parameters();
  std::vector<std::vector<float>> state(server().state_slots());
  for (std::size_t slot = 0; slot < state.size(); ++slot) {
    state[slot].resize(static_cast<std::size_t>(layout.trainable_elements()));
    gather_shards(replicas().world(), central().stream(0), synchronizer().shards(), VectorElements::kTrainable,
                  server().state(slot), state[slot].data());
  }
  for (Learner* learner : replicas().all()) {
    learner->assign(central().present(0), {}, learners::OptimizerState::kKeep);
    for (std::size_t slot = 0; slot < state.size(); ++slot) learner->assign_state(slot, state[slot].data(), {});
    learner->continue_from(server().steps());
  }
  replicas().settle();
}

}  // namespace arbalest::scheduler
