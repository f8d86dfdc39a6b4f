#include "jobs/options/readers/checkpoint_reader.h"

#include <limits>

namespace arbalest::jobs {

namespace {

constexpr double kDefaultMinutes = 10.0;
constexpr double kMostMinutes = 1e6;
constexpr int kMostCheckpoints = 1000;

}  // namespace

void fill_checkpoint(v1::Checkpoint& checkpoint) {
  const CheckpointOptions defaults;
  if (checkpoint.every_case() == v1::Checkpoint::EVERY_NOT_SET) checkpoint.set_every_minutes(kDefaultMinutes);
  if (!checkpoint.has_keep_last()) checkpoint.set_keep_last(defaults.keep_last);
  if (!checkpoint.has_keep_best()) checkpoint.set_keep_best(defaults.keep_best);
}

CheckpointOptions read_checkpoint(const v1::Checkpoint& checkpoint, dataflow::FieldIssues& issues) {
  using dataflow::out_of_range;
  CheckpointOptions options;
  switch (checkpoint.every_case()) {
    case v1::Checkpoint::kEveryEpochs:
      issues.add("checkpoint.every_epochs",
                 out_of_range("every_epochs", checkpoint.every_epochs(), {1, std::numeric_limits<int>::max()}));
      options.every_epochs = checkpoint.every_epochs();
      break;
    case v1::Checkpoint::kEveryBatches:
      issues.add("checkpoint.every_batches", out_of_range("every_batches", checkpoint.every_batches(),
                                                          {std::int64_t{1}, std::numeric_limits<std::int64_t>::max()}));
      options.every_batches = static_cast<std::uint64_t>(checkpoint.every_batches());
      break;
    default:
      issues.add("checkpoint.every_minutes",
                 out_of_range("every_minutes", checkpoint.every_minutes(), dataflow::above(0.0, kMostMinutes)));
      options.every_minutes = checkpoint.every_minutes();
  }
  issues.add("checkpoint.keep_last", out_of_range("keep_last", checkpoint.keep_last(), {0, kMostCheckpoints}));
  issues.add("checkpoint.keep_best", out_of_range("keep_best", checkpoint.keep_best(), {0, kMostCheckpoints}));
  options.keep_last = checkpoint.keep_last();
  options.keep_best = checkpoint.keep_best();
  return options;
}

}  // namespace arbalest::jobs
