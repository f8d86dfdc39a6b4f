// Checkpoints of runs over several processes, which are threads here. Each process has a view of its own of the run's
// directory: the same one, another one, or one that breaks while the run goes on.
#include <atomic>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "jobs/checkpoint/checkpoint_saver.h"
#include "jobs/checkpoint/checkpoint_store.h"
#include "jobs/checkpoint/transfer/run_transfer.h"
#include "jobs/report/resume_point.h"
#include "jobs/run/processes/shared_job.h"
#include "jobs/run/processes/shared_view.h"
#include "jobs/run/trainer.h"
#include "tests/process/memory_network.h"
#include "tests/support/catch.h"
#include "tests/support/source_directory.h"
#include "tests/support/temporary_directory.h"

namespace {

using namespace arbalest;
using tests::TemporaryDirectory;
namespace fs = std::filesystem;

const std::vector<std::string> kNone;

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
  void on_warning(const std::string& text) override { warnings.push_back(text); }
  void on_finish(const jobs::RunSummary& /*summary*/) override {}

  std::function<void()> at_checkpoint;
  std::vector<std::string> checkpoints;
  std::vector<std::string> warnings;
};

struct Run {
  jobs::RunSummary summary;  // of rank 0
  std::vector<std::string> checkpoints;
  std::vector<std::string> warnings;
};

struct Launch {
  std::vector<fs::path> roots;  // the run's directory as each rank sees it
  std::vector<int> learners = {1, 2};
  std::vector<std::string> settings = {};
  bool resumes = false;
  std::function<void()> at_checkpoint = {};
  std::function<void()> at_resume = {};  // called on rank 0 when the checkpoint has been verified
};

// Trains as `arbalest train` does, and passes on the first error.
Run train(const Launch& launch) {
  const int ranks = static_cast<int>(launch.roots.size());
  tests::MemoryNetwork network(ranks);
  Notes notes;
  notes.at_checkpoint = launch.at_checkpoint;
  Run run;
  const auto body = [&](engine::process::World& world) {
    const auto place = static_cast<std::size_t>(world.rank());
    std::vector<std::string> settings = {"training.max_epochs=3", "training.batch_size=200",
                                         "checkpoint={every_batches: 40 keep_last: 99}",
                                         "learners.per_device.fixed=" + std::to_string(launch.learners[place])};
    settings.insert(settings.end(), launch.settings.begin(), launch.settings.end());
    const jobs::JobOptions job =
        jobs::load_shared_job(world, tests::source_directory() + "/configs/logistic-digits.txtpb", settings);
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
      fs::path& source = point.saved.source.path;
      source = launch.roots[place] / fs::relative(source, launch.roots[0]);
      context.resumed = &point.saved;
      context.resumed_path = source.string();
    }
    const jobs::RunSummary summary = jobs::train(job, context);
    if (world.rank() == 0) run.summary = summary;
    world.close();
  };
  std::vector<std::exception_ptr> failures(launch.roots.size());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto world = network.open(rank);
      try {
        body(*world);
      } catch (const engine::Error& error) {
        world->announce_failure(error);
        failures[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  run.checkpoints = notes.checkpoints;
  run.warnings = notes.warnings;
  return run;
}

// The files of all verified checkpoints, but for the state, which has times.
std::map<std::string, std::string> files_of(const fs::path& root) {
  std::map<std::string, std::string> files;
  for (const jobs::Checkpoint& listed : jobs::list_checkpoints(jobs::checkpoints_of(root))) {
    const jobs::Checkpoint checkpoint = jobs::open_checkpoint(listed.path);
    for (const jobs::ManifestEntry& file : checkpoint.files) {
      if (file.name != "state.txtpb") files[std::to_string(checkpoint.batches) + "/" + file.name] = file.xxh3_128;
    }
  }
  return files;
}

std::set<std::string> names_in(const fs::path& directory) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) names.insert(entry.path().filename());
  return names;
}

// Another name of `root`, as the mount of another host.
fs::path linked(const TemporaryDirectory& place, const fs::path& root) {
  fs::create_directory_symlink(root, place / "view");
  return place / "view";
}

}  // namespace

TEST_CASE("processes: checkpoints are the same whether all processes see the directory or send their learners",
          "[processes]") {
  const TemporaryDirectory shared;
  const TemporaryDirectory links;
  // A checkpoint at an epoch's end waits for the one before, so there are as many in each run.
  const std::vector<std::string> each_epoch = {"checkpoint={every_epochs: 1 keep_last: 99}"};
  const Run all_see = train({.roots = {shared.path(), linked(links, shared.path())}, .settings = each_epoch});
  const auto files = files_of(shared.path());
  const std::string first = std::to_string(jobs::list_checkpoints(shared / "checkpoints").front().batches);
  for (const char* learner : {"0", "1", "2"}) CHECK(files.contains(first + "/learner-000" + learner + ".safetensors"));
  CHECK_FALSE(files.contains(first + "/learner-0003.safetensors"));
  CHECK(all_see.warnings == kNone);

  const TemporaryDirectory own;
  const TemporaryDirectory other;
  const Run one_sends = train({.roots = {own.path(), other.path()}, .settings = each_epoch});
  CHECK(files_of(own.path()) == files);
  CHECK(names_in(other.path()).empty());
  CHECK(one_sends.warnings == kNone);
  CHECK(one_sends.checkpoints.size() == all_see.checkpoints.size());
  CHECK(one_sends.summary.model_sha256 == all_see.summary.model_sha256);
  for (const fs::path& root : {shared.path(), own.path()}) {
    for (const std::string& name : names_in(root / "checkpoints")) CHECK_FALSE(name.starts_with("."));
    for (const std::string& name : names_in(root)) CHECK_FALSE(name.starts_with("."));
  }
}

TEST_CASE("processes: a run that some processes see goes on to the bytes of one that never stopped", "[processes]") {
  const TemporaryDirectory whole;
  const Launch launch{.roots = {whole.path(), whole.path(), whole.path()}, .learners = {1, 2, 1}};
  const Run expected = train(launch);
  const TemporaryDirectory root;
  const TemporaryDirectory links;
  const TemporaryDirectory other;
  const fs::path view = linked(links, root.path());
  // In turn all see the directory, one sends its learners, and one that has sent them reads them itself.
  const std::vector<std::vector<fs::path>> views = {
      {root.path(), view, other.path()}, {root.path(), other.path(), view}, {root.path(), view, view}};
  Launch part = launch;
  for (std::size_t i = 0; i < views.size(); ++i) {
    part.roots = views[i];
    part.resumes = i > 0;
    part.settings = {"training.max_epochs=" + std::to_string(i + 1)};
    const Run run = train(part);
    CHECK(run.warnings == kNone);
    if (i + 1 == views.size()) CHECK(run.summary.model_sha256 == expected.summary.model_sha256);
  }
}

TEST_CASE("processes: a process that cannot read a learner gets it from rank 0", "[processes]") {
  const TemporaryDirectory root;
  Launch launch{.roots = {root.path(), root.path()}, .settings = {"training.max_epochs=1"}};
  train(launch);
  const TemporaryDirectory stale;  // an older view of the same files
  fs::copy(root.path(), stale.path(), fs::copy_options::recursive);
  const std::vector<jobs::Checkpoint> all = jobs::list_checkpoints(jobs::checkpoints_of(stale.path()));
  tests::write_text(all.back().path / "learner-0002.safetensors", "damaged");
  const TemporaryDirectory whole;
  const Run expected = train({.roots = {whole.path(), whole.path()}, .settings = {"training.max_epochs=2"}});
  launch.roots[1] = stale.path();
  launch.resumes = true;
  launch.settings = {"training.max_epochs=2"};
  CHECK(train(launch).summary.model_sha256 == expected.summary.model_sha256);
  // If nobody has the learner, all end, and none waits for it.
  launch.settings = {"training.max_epochs=3"};
  const fs::path newest = jobs::list_checkpoints(jobs::checkpoints_of(root.path())).back().path;
  launch.at_resume = [&] { tests::write_text(newest / "learner-0001.safetensors", "damaged"); };
  CHECK_THROWS_WITH(train(launch), ContainsSubstring("learner-0001"));
}

TEST_CASE("processes: a process that cannot write is named, and the run and its earlier checkpoints stay",
          "[processes]") {
  const TemporaryDirectory whole;
  const Run expected = train({.roots = {whole.path(), whole.path()}});
  const TemporaryDirectory root;
  const TemporaryDirectory links;
  const fs::path view = linked(links, root.path());
  std::atomic<int> saved = 0;
  const Run run = train({.roots = {root.path(), view}, .at_checkpoint = [&] {
                           if (++saved != 2) return;
                           fs::remove(view);
                           tests::write_text(view, "a file in the place of the directory");
                         }});
  CHECK(run.summary.status == jobs::RunStatus::kCompleted);
  CHECK(run.summary.model_sha256 == expected.summary.model_sha256);
  CHECK(run.checkpoints.size() == 2);
  REQUIRE_FALSE(run.warnings.empty());
  for (const std::string& warning : run.warnings) {
    CHECK_THAT(warning, ContainsSubstring("was not saved: rank 1 on host here: ") &&
                            ContainsSubstring("learner-0001") && ContainsSubstring("earlier checkpoints are intact"));
  }
  CHECK(files_of(root.path()).size() > 0);
  CHECK(names_in(root / "checkpoints").size() == 2);  // nothing is left of the failed ones
}

TEST_CASE("processes: a view of the directory is shared only if both sides see what the other writes", "[processes]") {
  const TemporaryDirectory root;
  const TemporaryDirectory links;
  const TemporaryDirectory other;
  tests::write_text(root / ".view-0123", "left by a run that was killed");
  const std::vector<fs::path> roots = {root.path(), linked(links, root.path()), other.path(), other / "missing"};
  tests::MemoryNetwork network(4);
  std::vector<jobs::SharedView> views(4);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 4; ++rank) {
    threads.emplace_back([&, rank] {
      const auto world = network.open(rank);
      views[static_cast<std::size_t>(rank)] = jobs::look_at(*world, roots[static_cast<std::size_t>(rank)]);
      world->close();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const jobs::SharedView& view : views) {
    CHECK(view.sees == std::vector<bool>{true, true, false, false});
    CHECK(view.warning.empty());
  }
  CHECK(names_in(root.path()).empty());
  CHECK(names_in(other.path()).empty());
}
