// Ends a run that has to leave out more unreadable images than its job allows (max_skipped).
#pragma once

#include <cstdint>

#include "dataflow/input/batches/batch_ring.h"
#include "train/live/live_run.h"

namespace arbalest::jobs {

// Images are counted over all processes. The state of the epoch under way, which checkpoints hold, tells how many it
// has gone without: a resumed run counts on.
class SkipWatch {
 public:
  // The run must outlive it. All functions but the constructor need its session.
  explicit SkipWatch(LiveRun& run) : run_(run) {}

  // Call it before the first iteration of an epoch, or where a resumed run goes on within it.
  void begin_epoch();
  // Whether the images that this process has left out since the last count may be too many together with those of the
  // others. If too many were left out, this is so on some process.
  bool asks_to_count() const;
  // Counts. Every process calls it once drained, and all throw a SharedError of kind kData beyond the limit.
  void check_epoch();

  // Call them before and after the model is evaluated; check_evaluation() throws as check_epoch() does. Images that
  // batch norm's statistics are measured on count, too.
  void begin_evaluation();
  void check_evaluation();

 private:
  bool is_on() const;
  std::int64_t skipped_in_epoch() const;
  std::int64_t epoch_examples() const;
  void check(const std::string& set, std::int64_t skipped, std::int64_t examples,
             const dataflow::BatchRing& ring) const;

  LiveRun& run_;
  std::int64_t known_ = 0;       // skipped in this epoch by all processes, at the last count
  std::int64_t own_ = 0;         // of the training ring of this process, at that time
  std::int64_t statistics_ = 0;  // of the statistics' ring of this process, at the last check
};

}  // namespace arbalest::jobs
