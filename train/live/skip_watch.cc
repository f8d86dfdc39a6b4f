#include "train/live/skip_watch.h"

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "dataflow/input/skip_limit.h"
#include "engine/process/all_gather.h"
#include "engine/process/packing.h"
#include "train/processes/shared_results.h"

namespace arbalest::jobs {

using engine::process::all_gather;

bool SkipWatch::is_on() const { return run_.job.data.on_unreadable == dataflow::OnUnreadable::kSkip; }

// Mini-batches of training have a place for an example more than examples only where one was left out.
std::int64_t SkipWatch::skipped_in_epoch() const {
  const scheduler::Progress& epoch = run_.state.epoch;
  return epoch.tasks * run_.job.training.batch_size - epoch.examples;
}

std::int64_t SkipWatch::epoch_examples() const {
  return run_.session->training_order().batches_per_epoch() * run_.job.training.batch_size;
}

void SkipWatch::begin_epoch() {
  dataflow::BatchRing& ring = run_.session->training_ring();
  ring.forget_named();
  known_ = skipped_in_epoch();
  own_ = ring.skipped();
}

bool SkipWatch::asks_to_count() const {
  const std::int64_t own = run_.session->training_ring().skipped() - own_;
  if (!is_on() || own == 0) return false;
  return known_ + own * run_.world.size() > run_.job.data.skip_limit.of(epoch_examples());
}

void SkipWatch::check_epoch() {
  if (!is_on()) return;
  const dataflow::BatchRing& ring = run_.session->training_ring();
  known_ = skipped_in_epoch();
  own_ = ring.skipped();
  check(run_.session->training_data().name(), known_, epoch_examples(), ring);
}

void SkipWatch::begin_evaluation() {
  run_.session->test_ring().forget_named();
  if (run_.session->validation_ring() != nullptr) run_.session->validation_ring()->forget_named();
  if (run_.session->statistics_ring() != nullptr) run_.session->statistics_ring()->forget_named();
}

void SkipWatch::check_evaluation() {
  if (!is_on()) return;
  Session& session = *run_.session;
  const auto of = [&](EvaluationSet set) { return run_.scores.examples(set); };
  if (const auto read = of(EvaluationSet::kTest)) {
    const std::int64_t all = session.test_examples();
    check(fmt::format("{} (test set)", run_.job.data.directory), all - *read, all, session.test_ring());
  }
  if (const auto read = of(EvaluationSet::kValidation)) {
    const std::int64_t all = session.validation_examples();
    check(fmt::format("{} (validation set)", run_.job.data.directory), all - *read, all, *session.validation_ring());
  }
  const dataflow::BatchRing* ring = session.statistics_ring();
  if (ring == nullptr) return;
  const std::int64_t before = std::exchange(statistics_, ring->skipped());
  const std::vector<double> skipped = all_gather(run_.world, static_cast<double>(statistics_ - before));
  const auto all = static_cast<std::int64_t>(ring->batches().value_or(0)) * run_.job.training.batch_size;
  check(fmt::format("{} (batch norm's statistics)", session.training_data().name()),
        static_cast<std::int64_t>(std::reduce(skipped.begin(), skipped.end())), all, *ring);
}

// All processes come to the same answer.
void SkipWatch::check(const std::string& set, std::int64_t skipped, std::int64_t examples,
                      const dataflow::BatchRing& ring) const {
  const dataflow::SkipLimit& limit = run_.job.data.skip_limit;
  if (skipped <= limit.of(examples)) return;
  std::vector<std::string> first;
  for (const std::string& names : all_gather(run_.world, engine::process::pack(ring.named_skipped()))) {
    for (std::string& name : engine::process::unpack(names)) first.push_back(std::move(name));
  }
  try {
    dataflow::check_skipped(set, skipped, examples, limit, first);
  } catch (const engine::Error& error) {
    throw SharedError(error.kind(), error.what());
  }
}

}  // namespace arbalest::jobs
