#include "options/readers/checkpoint_reader.h"

#include "dataflow/models/fields/field_ranges.h"

namespace arbalest::jobs {

CheckpointOptions read_checkpoint(const v1::Checkpoint& checkpoint, dataflow::FieldIssues& issues) {
  dataflow::check_fields(checkpoint, "checkpoint", issues);
  CheckpointOptions options;
  if (checkpoint.has_every_minutes()) options.every_minutes = checkpoint.every_minutes();
  if (checkpoint.has_every_epochs()) options.every_epochs = checkpoint.every_epochs();
  if (checkpoint.has_every_batches()) options.every_batches = static_cast<std::uint64_t>(checkpoint.every_batches());
  options.keep_last = checkpoint.keep_last();
  options.keep_best = checkpoint.keep_best();
  return options;
}

}  // namespace arbalest::jobs
