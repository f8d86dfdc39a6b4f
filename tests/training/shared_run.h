// Runs over several processes that save checkpoints. The processes are threads here. Each has a view of its own of the
// run's directory.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_saver.h"
#include "checkpoint/checkpoint_store.h"
#include "checkpoint/transfer/run_transfer.h"
#include "report/resume_point.h"
#include "tests/process/ranks.h"
#include "tests/support/source_directory.h"
#include "tests/support/temporary_directory.h"
#include "train/processes/shared_job.h"
#include "train/train.h"

namespace arbalest::tests {

// The observer of rank 0.
class Notes final : public jobs::RunObserver {
 public:
  void on_start(const jobs::RunStart& start) override {
    warnings = start.warnings;
    std::erase_if(warnings,
                  [](const std::string& text) { return text.find(" share the ") != std::string::npos; });  // cores
  }
  void on_progress(const jobs::RunProgress& /*progress*/) override {}
  void on_epoch(const jobs::EpochRow& /*row*/) override {}
  void on_checkpoint(const jobs::CheckpointRow& row) override {
    checkpoints.push_back(row.path);
    if (at_checkpoint) at_checkpoint();
  }
  void on_warning(const std::string& text) override {
    warnings.push_back(text);
    if (at_warning) at_warning();
  }
  void on_rollback(const jobs::RollbackRow& row) override { rollbacks.push_back(row); }
  void on_finish(const jobs::RunSummary& /*summary*/) override {}

  std::function<void()> at_checkpoint;
  std::function<void()> at_warning;
  std::vector<std::string> checkpoints;
  std::vector<std::string> warnings;
  std::vector<jobs::RollbackRow> rollbacks;
};

struct SharedRun {
  jobs::RunSummary summary;  // of rank 0
  std::vector<std::string> checkpoints;
  std::vector<std::string> warnings;
  std::vector<jobs::RollbackRow> rollbacks;
};

struct SharedLaunch {
  std::vector<std::filesystem::path> roots;  // the run's directory as each rank sees it
  std::vector<int> learners = {1, 2};
  std::vector<std::string> settings = {};
  std::function<void(jobs::JobOptions& job)> adjust = {};  // sets what a job file may not say
  bool resumes = false;
  std::function<void()> at_checkpoint = {};
  std::function<void()> at_warning = {};
  std::function<void()> at_resume = {};  // called on rank 0 when the checkpoint has been verified
};

// Trains as `arbalest train` does, and passes on the first error.
inline SharedRun train(const SharedLaunch& launch) {
  const int ranks = static_cast<int>(launch.roots.size());
  Notes notes;
  notes.at_checkpoint = launch.at_checkpoint;
  notes.at_warning = launch.at_warning;
  SharedRun run;
  on_each_rank(ranks, [&](engine::process::World& world) {
    const auto place = static_cast<std::size_t>(world.rank());
    std::vector<std::string> settings = {"training.max_epochs=3", "training.batch_size=200",
                                         "checkpoint={every_batches: 40 keep_last: 99}",
                                         "learners.per_device.fixed=" + std::to_string(launch.learners[place])};
    settings.insert(settings.end(), launch.settings.begin(), launch.settings.end());
    jobs::JobOptions job =
        jobs::load_shared_job(world, source_directory() + "/configs/logistic-digits.txtpb", settings);
    if (launch.adjust) launch.adjust(job);
    jobs::RunContext context;
    context.world = &world;
    context.output_directory = launch.roots[place].string();
    if (world.rank() == 0) context.observers = {&notes};
    jobs::ResumePoint point;
    if (launch.resumes) {
      const auto fail = [](const std::string& text) { engine::fail(engine::ErrorKind::kInternal, "{}", text); };
      if (world.rank() == 0) point = jobs::newest_resume_point(launch.roots[0], job, fail).value();
      if (world.rank() == 0 && launch.at_resume) launch.at_resume();
      jobs::broadcast_run(world, point.saved);
      std::filesystem::path& source = point.saved.source.path;
      source = launch.roots[place] / std::filesystem::relative(source, launch.roots[0]);
      context.resumed = &point.saved;
      context.resumed_path = source.string();
    }
    const jobs::RunSummary summary = jobs::train(job, context);
    if (world.rank() == 0) run.summary = summary;
  });
  run.checkpoints = notes.checkpoints;
  run.warnings = notes.warnings;
  run.rollbacks = notes.rollbacks;
  return run;
}

// The files of all verified checkpoints, but for the state, which has times.
inline std::map<std::string, std::string> files_of(const std::filesystem::path& root) {
  std::map<std::string, std::string> files;
  for (const jobs::Checkpoint& listed : jobs::list_checkpoints(jobs::checkpoints_of(root))) {
    const jobs::Checkpoint checkpoint = jobs::open_checkpoint(listed.path);
    for (const jobs::ManifestEntry& file : checkpoint.files) {
      if (file.name != "state.txtpb") files[std::to_string(checkpoint.batches) + "/" + file.name] = file.xxh3_128;
    }
  }
  return files;
}

inline std::set<std::string> names_in(const std::filesystem::path& directory) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) names.insert(entry.path().filename());
  return names;
}

// Another name of `root`, as the mount of another host.
inline std::filesystem::path linked(const TemporaryDirectory& place, const std::filesystem::path& root) {
  std::filesystem::create_directory_symlink(root, place / "view");
  return place / "view";
}

}  // namespace arbalest::tests
