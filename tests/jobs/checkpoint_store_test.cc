// Tests which checkpoints are found, renamed and deleted.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <random>

#include "engine/base/error.h"
#include "tests/jobs/checkpoint_rig.h"
#include "tests/support/fault_count.h"

namespace arbalest::jobs {
namespace {

namespace fs = std::filesystem;
using tests::TemporaryDirectory;
using tests::write_text;

void damage(const fs::path& checkpoint) { write_text(checkpoint / "state.txtpb", "damaged"); }

// The number of a process that has ended.
pid_t ended_process() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  return child;
}

// Runs as a user without rights in this scope.
class Nobody {
 public:
  Nobody() {
    if (geteuid() != 0) return;
    constexpr uid_t kNobody = 65534;
    if (seteuid(kNobody) != 0) throw std::runtime_error("seteuid");
    changed_ = true;
  }
  ~Nobody() {
    if (changed_ && seteuid(0) != 0) std::abort();
  }
  Nobody(const Nobody&) = delete;
  Nobody& operator=(const Nobody&) = delete;

 private:
  bool changed_ = false;
};

}  // namespace

TEST_CASE("checkpoints: damaged ones are renamed, each to a free name") {
  const TemporaryDirectory run;
  write_small(run.path(), 1);
  std::vector<std::string> warnings;
  for (int time = 0; time < 3; ++time) {
    damage(write_small(run.path(), 2));
    CHECK(newest_checkpoint(run.path(), [&](const std::string& text) { warnings.push_back(text); })->batches == 1);
  }
  CHECK(warnings.size() == 3);
  CHECK(names_in(run.path()) == std::vector<std::string>{"000000000001", "000000000002.damaged",
                                                         "000000000002.damaged-2", "000000000002.damaged-3"});
  damage(run / "000000000001");
  CHECK_FALSE(newest_checkpoint(run.path(), [](const std::string&) {}).has_value());
}

TEST_CASE("checkpoints: a damaged one below the newest is left alone") {
  const TemporaryDirectory run;
  damage(write_small(run.path(), 1));
  write_small(run.path(), 2);
  CHECK(newest_checkpoint(run.path(), no_warning)->batches == 2);
  CHECK(names_in(run.path()) == std::vector<std::string>{"000000000001", "000000000002"});
}

TEST_CASE("checkpoints: other entries of the directory are ignored") {
  const TemporaryDirectory run;
  const fs::path whole = write_small(run.path(), 1);
  for (const char* name : {"00000000002", "000000000003.damaged", "00000000000x", "99999999999999999999999", "notes"}) {
    fs::copy(whole, run / name);
  }
  write_text(run / "000000000009", "a file");
  fs::create_directory_symlink(whole, run / "000000000008");
  const std::vector<std::string> before = names_in(run.path());
  std::vector<std::string> warnings;
  CHECK(newest_checkpoint(run.path(), [&](const std::string& text) { warnings.push_back(text); })->path == whole);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], ContainsSubstring("000000000009' is a file, and a checkpoint is a directory"));
  sweep_partial(run.path());
  retain(run.path(), 1, {}, no_warning);
  CHECK(names_in(run.path()) == before);
}

TEST_CASE("checkpoints: a directory that cannot be read is an error, not a fresh start") {
  const TemporaryDirectory run;
  fs::permissions(run.path(), fs::perms::all);
  write_small(run / "checkpoints", 1);
  const fs::path newer = write_small(run / "checkpoints", 2);
  const auto check = [&](const fs::path& locked, const fs::path& named) {
    fs::permissions(locked, fs::perms::none);
    {
      const Nobody nobody;
      try {
        newest_checkpoint(run / "checkpoints", no_warning);
        FAIL_CHECK("accepted");
      } catch (const engine::Error& error) {
        CHECK(error.kind() == engine::ErrorKind::kCheckpoint);
        CHECK_THAT(error.what(), ContainsSubstring(named.string()) && ContainsSubstring("Permission denied"));
      }
    }
    fs::permissions(locked, fs::perms::all);
  };
  fs::permissions(run / "checkpoints", fs::perms::all);
  check(run / "checkpoints", run / "checkpoints");
  check(newer, newer);
  check(newer / "state.txtpb", newer / "state.txtpb");
  check(newer / "manifest.txtpb", newer / "manifest.txtpb");
  CHECK(newest_checkpoint(run / "checkpoints", no_warning)->batches == 2);
}

TEST_CASE("checkpoints: a sweep removes what killed processes left, and nothing else") {
  const TemporaryDirectory run;
  const std::string gone = ".partial-" + std::to_string(ended_process());
  fs::create_directories(run / (gone + "-0") / "below");
  write_text(run / (gone + "-0") / "learner-00.safetensors", "x");
  fs::create_directory(run / (gone + "-1"));
  // Left by a process that had our number, as it happens in a container. No lock is held.
  fs::create_directory(run / (".partial-" + std::to_string(getpid()) + "-0"));
  write_text(run / (gone + "-2"), "a file");
  fs::create_directory(run / "outside");
  write_text(run / "outside/kept", "x");
  fs::create_directory_symlink(run / "outside", run / (gone + "-3"));
  fs::create_directory(run / "partial-1-1");
  write_small(run.path(), 1);
  // Whatever its number, a directory whose lock is held is in use.
  fs::create_directory(run / (gone + "-4"));
  const int lock = open((run / (gone + "-4")).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  REQUIRE(flock(lock, LOCK_EX) == 0);
  CheckpointWriter writer(run.path(), 2);
  fill(writer, 2);

  sweep_partial(run.path());
  CHECK(names_in(run.path()).size() == 7);
  for (const char* number : {"-0", "-1"}) CHECK_FALSE(fs::exists(run / (gone + number)));
  for (const char* number : {"-2", "-3", "-4"}) CHECK(fs::exists(fs::symlink_status(run / (gone + number))));
  CHECK(fs::exists(run / "outside/kept"));
  close(lock);
  sweep_partial(run.path());
  CHECK_FALSE(fs::exists(run / (gone + "-4")));
  CHECK(holds_small(open_checkpoint(writer.commit())));
  sweep_partial(run / "none");
}

TEST_CASE("checkpoints: nothing is deleted while fewer verify than are kept") {
  const TemporaryDirectory run;
  for (const std::uint64_t batches : {1, 2, 3}) write_small(run.path(), batches);
  retain(run.path(), 3, {}, no_warning);
  CHECK(names_in(run.path()).size() == 3);
  damage(run / "000000000003");
  int warnings = 0;
  retain(run.path(), 2, {}, [&](const std::string&) { ++warnings; });
  CHECK(warnings == 1);
  CHECK(names_in(run.path()) == std::vector<std::string>{"000000000001", "000000000002", "000000000003.damaged"});
}

// The model of R25: checkpoints by their number, and whether each is whole.
class Model {
 public:
  explicit Model(const fs::path& directory) : directory_(directory) {}

  void step(std::mt19937_64& random) {
    const std::optional<std::uint64_t> before = newest();
    const std::uint64_t choice = random() % 100;
    if (choice < 40) {
      batches_ += random() % 3;  // sometimes the same number again
      write_small(directory_, batches_);
      whole_[batches_] = true;
    } else if (choice < 50) {  // a writer that gives up
      CheckpointWriter writer(directory_, batches_ + 1);
      fill(writer, batches_ + 1);
    } else if (choice < 55) {  // a writer that was killed
      fs::create_directory(directory_ / (".partial-1-" + std::to_string(killed_++)));
    } else if (choice < 65 && !whole_.empty()) {
      const auto damaged = std::next(whole_.begin(), static_cast<long>(random() % whole_.size()));
      damage(directory_ / checkpoint_name(damaged->first));
      damaged->second = false;
    } else if (choice < 75) {
      resume();
      return;
    } else {
      keep(1 + static_cast<int>(random() % 3), random() % (batches_ + 1));
    }
    if (before && whole_.contains(*before) && whole_[*before]) CHECK(holds_small(open_checkpoint(path(*before))));
    check_names();
  }

 private:
  fs::path path(std::uint64_t batches) const { return directory_ / checkpoint_name(batches); }

  std::optional<std::uint64_t> newest() const {
    for (auto one = whole_.rbegin(); one != whole_.rend(); ++one) {
      if (one->second) return one->first;
    }
    return std::nullopt;
  }

  void resume() {
    sweep_partial(directory_);
    const std::optional<Checkpoint> found = newest_checkpoint(directory_, [](const std::string&) {});
    const std::optional<std::uint64_t> expected = newest();
    CHECK(found.has_value() == expected.has_value());
    if (found && expected) CHECK((found->batches == *expected && holds_small(*found)));
    while (!whole_.empty() && !whole_.rbegin()->second) whole_.erase(std::prev(whole_.end()));
    batches_ = expected.value_or(0);
    check_names();
    for (const std::string& name : names_in(directory_)) CHECK_FALSE(name.starts_with(".partial"));
  }

  void keep(int last, std::uint64_t best) {
    retain(directory_, last, std::vector<std::uint64_t>{best}, [](const std::string&) {});
    std::vector<std::uint64_t> gone;
    for (auto one = whole_.rbegin(); one != whole_.rend(); ++one) {
      if (last > 0 && one->second) {
        --last;
      } else if (last > 0 || one->first != best) {
        gone.push_back(one->first);  // damaged ones among the newest are renamed
      }
    }
    for (const std::uint64_t batches : gone) whole_.erase(batches);
  }

  void check_names() const {
    std::vector<std::string> expected;
    for (const auto& [batches, is_whole] : whole_) expected.push_back(checkpoint_name(batches));
    std::vector<std::string> found;
    for (const std::string& name : names_in(directory_)) {
      if (name.size() == 12 && name.starts_with('0')) found.push_back(name);
    }
    CHECK(found == expected);
  }

  fs::path directory_;
  std::map<std::uint64_t, bool> whole_;
  std::uint64_t batches_ = 0;
  int killed_ = 0;
};

TEST_CASE("checkpoints: random sequences of saves, failures, damage, resumes and retention agree with a model") {
  const int sequences = tests::number_from_environment("ARBALEST_RETENTION_SEQUENCES", 200);
  const int first = tests::number_from_environment("ARBALEST_FAULT_SEED", 0);
  for (int seed = first; seed < first + sequences; ++seed) {
    INFO("seed " << seed);
    const TemporaryDirectory run(memory_directory());
    Model model(run.path());
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    for (int step = 0; step < 25; ++step) model.step(random);
  }
  tests::count_faults(sequences);
}

}  // namespace arbalest::jobs
