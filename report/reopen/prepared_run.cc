#include "report/reopen/prepared_run.h"

#include <utility>

#include "checkpoint/job/continuation.h"
#include "checkpoint/transfer/run_transfer.h"
#include "engine/process/packing.h"
#include "train/processes/shared_results.h"

namespace arbalest::jobs {

PreparedRun::PreparedRun(JobOptions read_job, const Options& options, engine::process::World& world)
    : job_(std::move(read_job)) {
  together(world, [&] {
    if (world.rank() == 0) location_ = open_run_location(options.location, job_, options.warn);
  });
  share(world);
  if (!location_.completed.text.empty()) return;
  context_.world = &world;
  context_.data_root = options.data_root;
  context_.program = options.program;
  if (location_.point) {
    const std::vector<std::string>& more = location_.point->settings;
    if (!more.empty()) job_ = options.read(settings_with(options.settings, more));
    context_.resumed = &location_.point->saved;
    context_.resumed_path = location_.point->path.string();
  }
  if (world.rank() == 0) {
    context_.output_directory = directory().path().string();
    context_.log_bytes = [this] { return directory().log_bytes(); };
    context_.observers = {&directory()};
  }
  world.broadcast(context_.output_directory);
}

// Tells the other processes what rank 0 has found: why nothing is left to train, or the state to go on from.
void PreparedRun::share(engine::process::World& world) {
  world.broadcast(location_.completed.text);
  if (world.any_of(location_.point ? 1 : 0) == 0) return;
  if (!location_.point) location_.point.emplace();
  broadcast_run(world, location_.point->saved);
  std::string settings = engine::process::pack(location_.point->settings);
  world.broadcast(settings);
  location_.point->settings = engine::process::unpack(settings);
}

}  // namespace arbalest::jobs
