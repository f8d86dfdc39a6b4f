#include "bench/support/step_clock.h"

#include <cstddef>
#include <utility>

#include "bench/support/harness.h"
#include "engine/cuda/runtime/stream.h"

namespace arbalest::bench {

namespace {

double seconds_between(cudaEvent_t from, cudaEvent_t to) {
  float milliseconds = 0.0F;
  ARBALEST_CUDA(cudaEventElapsedTime(&milliseconds, from, to));
  return 1e-3 * static_cast<double>(milliseconds);
}

}  // namespace

void StepClock::start(int steps) {
  steps_.clear();
  spare_.resize(2 * static_cast<std::size_t>(steps));
  for (Moment& moment : spare_) ARBALEST_CUDA(cudaEventCreateWithFlags(moment.put(), cudaEventDefault));
  running_ = true;
}

StepClock::Times StepClock::stop() {
  running_ = false;
  std::vector<double> shares, gaps, lengths;
  for (const auto& [stream, steps] : steps_) {
    double within = 0.0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      lengths.push_back(seconds_between(steps[i].begin.get(), steps[i].end.get()));
      within += lengths.back();
      if (i > 0) gaps.push_back(seconds_between(steps[i - 1].end.get(), steps[i].begin.get()));
    }
    shares.push_back(within / seconds_between(steps.front().begin.get(), steps.back().end.get()));
  }
  return {summarize(shares).median, summarize(gaps).median, summarize(lengths).median};
}

bool StepClock::times(const engine::Stream& stream) const {
  return running_ && !marking_ && stream.role() == engine::StreamRole::kLearner;
}

void StepClock::before_task(const engine::Stream& stream, const engine::TaskInfo& /*task*/) {
  if (!times(stream)) return;
  std::vector<Step>& steps = steps_[&stream];
  if (steps.empty() || steps.back().end.get() != nullptr) steps.push_back({mark(stream), {}});
}

void StepClock::after_task(const engine::Stream& stream, const engine::TaskInfo& task) {
  // the last task of a step
  if (times(stream) && task.kind == engine::TaskKind::kResult) steps_[&stream].back().end = mark(stream);
}

StepClock::Moment StepClock::mark(const engine::Stream& stream) {
  Moment moment;
  if (spare_.empty()) {
    ARBALEST_CUDA(cudaEventCreateWithFlags(moment.put(), cudaEventDefault));
  } else {
    moment = std::move(spare_.back());
    spare_.pop_back();
  }
  marking_ = true;
  // An observer gets a const stream, but this one must enqueue on it.
  engine::cuda::as_cuda(const_cast<engine::Stream&>(stream))
      .submit("mark", [event = moment.get()](const engine::cuda::StreamContext& context) {
        ARBALEST_CUDA(cudaEventRecord(event, context.stream.handle));
      });
  marking_ = false;
  return moment;
}

}  // namespace arbalest::bench
