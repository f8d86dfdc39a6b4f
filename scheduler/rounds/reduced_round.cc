#include "scheduler/rounds/reduced_round.h"

#include "scheduler/rounds/gather_mean.h"

namespace arbalest::scheduler {

ReducedRound::ReducedRound(const sma::Options& options, const RoundContext& context) : Round(options, context) {
  for (const sma::ReplicaVectors& of_pool : replicas().vectors()) weights_.push_back(of_pool.weights);
}

StrideEnd ReducedRound::enqueue(dataflow::BatchRing& ring, Progress& /*progress*/) {
  enqueue_gradients(ring, clock().step(), true);
  const std::span<const dataflow::GradientPart> parts = replicas()[0].gradient_parts();
  for (std::size_t part = 0; part < parts.size(); ++part) {
    center().wait_for(replicas().part_ready(part), "wait for the gradients' part");
    center().average_gradients(parts[part].begin, parts[part].end);
  }
  replicas().enqueue_updates(ring, center().record());
  return {.rounds = 1};
}

// The replicas have equal weights, and their mean relative to one of them is exact. Their statistics differ, so these
// are averaged relative to zero, which is the same on every device.
std::optional<sma::AveragingTicket> ReducedRound::gather() {
  center().wait_for(replicas().record(), "wait for the replicas to be read");
  const auto trainable = static_cast<std::size_t>(center().sizes().trainable()) * sizeof(float);
  for (std::size_t p = 0; p < weights_.size(); ++p) {
    engine::Stream& stream = center().stream(p);
    float* base = center().present(p);
    stream.copy(base, weights_[p].front(), trainable, "base of the mean");
    stream.fill_zero(base + center().sizes().trainable(), center().vector_bytes() - trainable, "base of the mean");
  }
  return gather_mean(
      replicas(), center(), [&](std::size_t p) { return center().present(p); },
      [&](std::size_t p) { return center().other(p); });
}

bool ReducedRound::compare_copies() {
  sma::CopyComparison* comparison = synchronizer().comparison();
  const std::vector<engine::ElementRange> ranges = center().sizes().compared_ranges();
  if (comparison == nullptr || ranges.empty()) return false;
  center().wait_for(replicas().record(), "wait for updated replicas");
  comparison->enqueue(center().streams(), weights_, ranges);
  return true;
}

}  // namespace arbalest::scheduler
