#include "scheduler/rounds/reduced_round.h"

#include "scheduler/rounds/gather_mean.h"

namespace arbalest::scheduler {

ReducedRound::ReducedRound(const sma::Options& options, const RoundContext& context) : Round(options, context) {
  for (const sma::ReplicaVectors& of_pool : replicas().vectors()) weights_.push_back(of_pool.weights);
}

IterationEnd ReducedRound::enqueue(dataflow::BatchRing& ring, Progress& /*progress*/) {
  enqueue_gradients(ring, clock().step(), true);
  const std::span<const dataflow::GradientPart> parts = replicas().gradient_parts();
  for (std::size_t part = 0; part < parts.size(); ++part) {
    central().wait_for(replicas().part_ready(part), "wait for the gradients' part");
    central().average_gradients(parts[part].begin, parts[part].end);
  }
  replicas().enqueue_updates(ring, central().record());
  return {.rounds = 1};
}

// The replicas have equal weights, and their mean relative to one of them is exact. Their statistics differ, so these
// are averaged relative to zero, which is the same on every device.
std::optional<sma::AveragingTicket> ReducedRound::gather() {
  central().wait_for(replicas().record(), "wait for the replicas to be read");
  const auto trainable = static_cast<std::size_t>(central().sizes().trainable()) * sizeof(float);
  for (std::size_t p = 0; p < weights_.size(); ++p) {
    engine::Stream& stream = central().stream(p);
    float* base = central().present(p);
    stream.copy(base, weights_[p].front(), trainable, "base of the mean");
    stream.fill_zero(base + central().sizes().trainable(), central().vector_bytes() - trainable, "base of the mean");
  }
  return gather_mean(
      replicas(), central(), [&](std::size_t p) { return central().present(p); },
      [&](std::size_t p) { return central().other(p); });
}

bool ReducedRound::compare_copies() {
  sma::CopyComparison* comparison = synchronizer().comparison();
  const std::vector<engine::ElementRange> ranges = central().sizes().compared_ranges();
  if (comparison == nullptr || ranges.empty()) return false;
  central().wait_for(replicas().record(), "wait for updated replicas");
  comparison->enqueue(central().streams(), weights_, ranges);
  return true;
}

}  // namespace arbalest::scheduler
