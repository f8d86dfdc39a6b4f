// Checkpoints of runs over several processes, which are threads here. Each process has a view of its own of the run's
// directory: the same one, another one, or one that breaks while the run goes on.
#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/process/memory_network.h"
#include "tests/support/catch.h"
#include "tests/training/shared_run.h"
#include "train/processes/shared_view.h"

namespace arbalest::tests {
namespace {

namespace fs = std::filesystem;
using Run = SharedRun;
using Launch = SharedLaunch;

const std::vector<std::string> kNone;

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
  write_text(all.back().path / "learner-0002.safetensors", "damaged");
  const TemporaryDirectory whole;
  const Run expected = train({.roots = {whole.path(), whole.path()}, .settings = {"training.max_epochs=2"}});
  launch.roots[1] = stale.path();
  launch.resumes = true;
  launch.settings = {"training.max_epochs=2"};
  CHECK(train(launch).summary.model_sha256 == expected.summary.model_sha256);
  // If nobody has the learner, all end, and none waits for it.
  launch.settings = {"training.max_epochs=3"};
  const fs::path newest = jobs::list_checkpoints(jobs::checkpoints_of(root.path())).back().path;
  launch.at_resume = [&] { write_text(newest / "learner-0001.safetensors", "damaged"); };
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
                           write_text(view, "a file in the place of the directory");
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

TEST_CASE("processes: a run goes back to its checkpoint, whether all processes see the directory or not",
          "[processes]") {
  std::vector<std::string> models;
  for (const bool all_see : {true, false}) {
    CAPTURE(all_see);
    const TemporaryDirectory root;
    const TemporaryDirectory other;
    const Run run = train({.roots = {root.path(), all_see ? root.path() : other.path()},
                           .settings = {"training.on_divergence=ROLL_BACK", "training.max_epochs=1"},
                           .adjust = [](jobs::JobOptions& job) {
                             job.learning_rate.base = 1e38;  // outputs overflow
                             job.training.divergence.rollback_factor = 1e-39;
                           }});
    CHECK(run.summary.status == jobs::RunStatus::kCompleted);
    CHECK(run.rollbacks.size() == 1);
    CHECK(run.summary.test.value("accuracy").value() > 0.5);
    models.push_back(run.summary.model_sha256);
    CHECK(names_in(other.path()).empty());
  }
  CHECK(models[0] == models[1]);
}

TEST_CASE("processes: a view of the directory is shared only if both sides see what the other writes", "[processes]") {
  const TemporaryDirectory root;
  const TemporaryDirectory links;
  const TemporaryDirectory other;
  write_text(root / ".view-0123", "left by a run that was killed");
  const std::vector<fs::path> roots = {root.path(), linked(links, root.path()), other.path(), other / "missing"};
  MemoryNetwork network(4);
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

}  // namespace arbalest::tests
