// A process that is killed at any system call leaves the old or the new checkpoint (R2 of the scorecard).
#include "tests/jobs/checkpoint_rig.h"
#include "tests/jobs/traced_probe.h"
#include "tests/support/fault_count.h"

namespace arbalest::jobs {
namespace {

namespace fs = std::filesystem;
using tests::Completed;
using tests::SystemCall;
using tests::TemporaryDirectory;
using tests::TracedProbe;

// Kills the probe at each call of its work on a directory that `prepare` fills, and checks with `judge`.
template <typename Prepare, typename Judge>
void kill_everywhere(const std::string& command, const std::string& number, Prepare prepare, Judge judge) {
  const TemporaryDirectory run(memory_directory());
  const fs::path checkpoints = run / "checkpoints";
  const TracedProbe probe({command, checkpoints, number});
  prepare(checkpoints);
  const std::vector<SystemCall> calls = probe.calls();
  CHECK(calls.size() > 20);
  int killed = 0;
  for (const SystemCall& call : calls) {
    INFO(command << " killed at " << call.name << " " << call.when);
    fs::remove_all(checkpoints);
    prepare(checkpoints);
    const bool is_killed = probe.kill_at(call).exit_code == -SIGKILL;  // strace ends as its tracee
    killed += is_killed ? 1 : 0;
    judge(checkpoints);
  }
  CHECK(killed == static_cast<int>(calls.size()));
  tests::count_faults(killed);
}

// Checks that a resume finds this checkpoint or a newer one, and that no partial directory is left.
void check_resume(const fs::path& checkpoints, std::uint64_t at_least) {
  sweep_partial(checkpoints);
  const std::optional<Checkpoint> newest = newest_checkpoint(checkpoints, no_warning);
  REQUIRE(newest.has_value());
  CHECK(newest->batches >= at_least);
  CHECK(holds_small(*newest));
  for (const std::string& name : names_in(checkpoints)) CHECK_FALSE(name.starts_with("."));
}

}  // namespace

TEST_CASE("power loss: everything is synced before the checkpoint gets its name, and the name after it") {
  const TemporaryDirectory run(memory_directory());
  write_small(run / "checkpoints", 1);
  std::string order;
  for (const SystemCall& call : TracedProbe({"save", run / "checkpoints", "2"}).calls()) {
    if (call.name == "fsync" || call.name == "rename") order += call.name + " ";
  }
  // Three files, the manifest, their directory; then the directory of checkpoints.
  CHECK(order == "fsync fsync fsync fsync fsync rename fsync ");
}

TEST_CASE("killed at every call: a save leaves the old or the new checkpoint") {
  kill_everywhere(
      "save", "2", [](const fs::path& checkpoints) { write_small(checkpoints, 1); },
      [](const fs::path& checkpoints) {
        CHECK(refusal(checkpoints / "000000000001") == "accepted");
        check_resume(checkpoints, 1);
      });
}

TEST_CASE("killed at every call: a save that replaces a checkpoint leaves the old or the new one") {
  kill_everywhere(
      "save", "2", [](const fs::path& checkpoints) { write_small(checkpoints, 2); },
      [](const fs::path& checkpoints) { check_resume(checkpoints, 2); });
}

TEST_CASE("killed at every call: a resume that sets a damaged checkpoint aside can be repeated") {
  kill_everywhere(
      "resume", "0",
      [](const fs::path& checkpoints) {
        write_small(checkpoints, 1);
        tests::write_text(write_small(checkpoints, 2) / "state.txtpb", "damaged");
        fs::create_directory(checkpoints / ".partial-1-0");
        tests::write_text(checkpoints / ".partial-1-0/learner-00.safetensors", "cut off");
      },
      [](const fs::path& checkpoints) {
        const Completed again = tests::run_probe({"resume", checkpoints});
        CHECK(again.exit_code == 0);
        CHECK(again.out == "1\n");
        CHECK(fs::exists(checkpoints / "000000000002.damaged/manifest.txtpb"));
        check_resume(checkpoints, 1);
      });
}

TEST_CASE("killed at every call: retention leaves the newest checkpoint, and no half of another") {
  kill_everywhere(
      "retain", "1",
      [](const fs::path& checkpoints) {
        for (const std::uint64_t batches : {1, 2, 3}) write_small(checkpoints, batches);
      },
      [](const fs::path& checkpoints) {
        check_resume(checkpoints, 3);
        for (const std::string& name : names_in(checkpoints)) CHECK(refusal(checkpoints / name) == "accepted");
      });
}

}  // namespace arbalest::jobs
