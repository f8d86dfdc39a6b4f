// System calls that fail while a checkpoint is written, each in turn (R3 of the scorecard), and a full file system.
#include <sys/resource.h>

#include <csignal>
#include <map>
#include <optional>
#include <set>

#include "engine/base/error.h"
#include "messages/exit_codes.h"
#include "tests/jobs/checkpoint_rig.h"
#include "tests/jobs/traced_probe.h"
#include "tests/support/fault_count.h"
#include "tests/support/skip.h"

namespace arbalest::jobs {
namespace {

namespace fs = std::filesystem;
using tests::Completed;
using tests::SystemCall;
using tests::TemporaryDirectory;
using tests::TracedProbe;

const std::set<std::string> kFullDisk = {"ENOSPC", "EDQUOT", "EFBIG"};

// Errors that Linux documents for these calls.
const std::map<std::string, std::vector<std::string>> kErrors = {
    {"write", {"ENOSPC", "EDQUOT", "EFBIG", "EIO", "EINTR"}},
    {"fsync", {"EIO", "ENOSPC"}},
    {"close", {"EIO"}},
    {"openat", {"ENOSPC", "EMFILE", "EACCES"}},
    {"mkdir", {"ENOSPC", "EACCES"}},
    {"rename", {"EIO", "ENOSPC"}},
    {"renameat2", {"EIO", "ENOSPC"}},
    {"flock", {"ENOLCK"}},
};

struct Fault {
  SystemCall call;
  std::string error;
  bool from_then_on;
};

std::vector<Fault> faults_of(const std::vector<SystemCall>& calls) {
  std::vector<Fault> faults;
  for (const SystemCall& call : calls) {
    const auto errors = kErrors.find(call.name);
    if (errors == kErrors.end()) continue;
    for (const std::string& error : errors->second) {
      faults.push_back({call, error, false});
      // An interrupted call is repeated until it is not interrupted.
      if (error == errors->second.front()) faults.push_back({call, error, true});
    }
  }
  return faults;
}

// Checks what the process said about a save that failed.
void check_report(const fs::path& checkpoints, const Completed& done, const Fault& fault) {
  CHECK(done.exit_code == (kFullDisk.contains(fault.error) ? exit_codes::kOutOfMemory : exit_codes::kInternalError));
  if (fault.call.name == "write" && fault.from_then_on) return;  // the message cannot be written either
  CHECK_THAT(done.err, ContainsSubstring("cannot write '" + checkpoints.string()));
}

// Checks the end of a save of checkpoint 2 beside checkpoint 1, or over checkpoint 2 if `replaces`.
void check_end(const fs::path& checkpoints, const Completed& done, const Fault& fault, bool replaces) {
  CHECK(refusal(checkpoints / (replaces ? "000000000002" : "000000000001")) == "accepted");
  // strace fails a close without closing, so the probe finds an open file, whatever else happens.
  const bool is_close = fault.call.name == "close";
  const bool is_saved = is_close ? done.err.empty() : done.exit_code == 0;
  if (is_saved) {
    CHECK(refusal(checkpoints / "000000000002") == "accepted");
  } else {
    CHECK(fs::exists(checkpoints / "000000000002") == replaces);
    if (!is_close) check_report(checkpoints, done, fault);
    // Nothing is left, unless removing the files fails, too.
    if (!fault.from_then_on) CHECK(names_in(checkpoints).size() == 1);
  }
  sweep_partial(checkpoints);
  for (const std::string& name : names_in(checkpoints)) CHECK_FALSE(name.starts_with("."));
  CHECK(holds_small(*newest_checkpoint(checkpoints, no_warning)));
}

void fail_everywhere(bool replaces) {
  const TemporaryDirectory run(memory_directory());
  const fs::path checkpoints = run / "checkpoints";
  const TracedProbe probe({"save", checkpoints, "2"});
  const std::uint64_t before = replaces ? 2 : 1;
  write_small(checkpoints, before);
  const std::vector<Fault> faults = faults_of(probe.calls());
  CHECK(faults.size() > 80);
  int failed = 0;
  for (const Fault& fault : faults) {
    INFO(fault.call.name << " " << fault.call.when << (fault.from_then_on ? "+ " : " ") << fault.error);
    fs::remove_all(checkpoints);
    write_small(checkpoints, before);
    const Completed done = probe.fail_at(fault.call, fault.error, fault.from_then_on);
    failed += done.exit_code == 0 ? 0 : 1;
    INFO(done.err);
    check_end(checkpoints, done, fault, replaces);
  }
  CHECK(failed > 60);
  tests::count_faults(static_cast<int>(faults.size()));
}

}  // namespace

TEST_CASE("failing calls: a save fails cleanly at every call, and the checkpoint before it stays") {
  fail_everywhere(false);
}

TEST_CASE("failing calls: a save that replaces a checkpoint fails cleanly at every call, and the old one stays") {
  fail_everywhere(true);
}

TEST_CASE("failing calls: an old checkpoint that cannot be deleted is a warning with its path") {
  const TemporaryDirectory run(memory_directory());
  const fs::path checkpoints = run / "checkpoints";
  const TracedProbe probe({"retain", checkpoints, "1"});
  const auto prepare = [&] {
    fs::remove_all(checkpoints);
    for (const std::uint64_t batches : {1, 2, 3}) write_small(checkpoints, batches);
  };
  prepare();
  int failures = 0;
  for (const SystemCall& call : probe.calls()) {
    if (call.name != "rename" && call.name != "unlink" && call.name != "unlinkat") continue;
    for (const bool from_then_on : {false, true}) {
      for (const char* error : {"EACCES", "EPERM", "EIO"}) {
        INFO(call.name << " " << call.when << " " << error << (from_then_on ? " and all later ones" : ""));
        prepare();
        const Completed done = probe.fail_at(call, error, from_then_on);
        CHECK(done.exit_code == 0);
        CHECK_THAT(done.err, ContainsSubstring("warning: cannot delete") &&
                                 ContainsSubstring((checkpoints / "00000000000").string()));
        CHECK(refusal(checkpoints / "000000000003") == "accepted");
        sweep_partial(checkpoints);
        for (const std::string& name : names_in(checkpoints)) CHECK(refusal(checkpoints / name) == "accepted");
        ++failures;
      }
    }
  }
  CHECK(failures >= 60);  // two checkpoints, each a rename, a manifest, three files and a directory
  tests::count_faults(failures);
}

TEST_CASE("failing calls: a limit on the size of files is reported as a full disk") {
  const TemporaryDirectory run;
  write_small(run.path(), 1);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlim_t manifest_bytes = fs::file_size(run / "000000000001/manifest.txtpb");
  for (const rlim_t bytes : {rlim_t{0}, rlim_t{1}, rlim_t{8}, rlim_t{200}, manifest_bytes - 1}) {
    const rlimit limit{bytes, before.rlim_max};
    std::optional<engine::Error> error;
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write_small(run.path(), 2);
    } catch (const engine::Error& thrown) {
      error = thrown;
    }
    setrlimit(RLIMIT_FSIZE, &before);
    INFO(bytes);
    REQUIRE(error.has_value());
    CHECK(error->kind() == engine::ErrorKind::kOutOfMemory);
    CHECK_THAT(error->what(), ContainsSubstring("File too large"));
    CHECK(names_in(run.path()) == std::vector<std::string>{"000000000001"});
  }
  signal(SIGXFSZ, handler);
  tests::count_faults(5);
  CHECK(refusal(run / "000000000001") == "accepted");
}

TEST_CASE("failing calls: a full file system keeps the old checkpoint and gets its space back") {
  const TemporaryDirectory run;
  const std::string probe = ARBALEST_CHECKPOINT_PROBE;
  const std::string script = "mount -t tmpfs -o size=1m,nr_inodes=100 tmpfs '" + run.path().string() +
                             "' || exit 77\n"
                             "cd '" +
                             run.path().string() + "'\n" + probe + " save c 1 || exit 78\n" +  //
                             "free() { df --output=avail . | tail -1; }\n"
                             "before=$(free)\n" +
                             probe + " save-large c 2; echo \"large: $?\"\n" +            //
                             "[ \"$(free)\" = \"$before\" ] || echo 'space is lost'\n" +  //
                             "ls -A c\n" + probe + " save c 3; echo \"small: $?\"\n" + probe + " resume c\n";
  const Completed done =
      tests::Subprocess({"/usr/bin/env", "unshare", "-rm", "sh", "-c", script}, {"PATH=/usr/bin:/bin"}, "/").wait();
  if (done.exit_code == 77 || done.exit_code == 127 || done.err.find("unshare") != std::string::npos) {
    tests::skip_test("no file system can be mounted here: " + done.err);
  }
  INFO(done.err);
  tests::count_faults(1);
  CHECK(done.out == "large: 6\n000000000001\nsmall: 0\n3\n");
  CHECK_THAT(done.err, ContainsSubstring("large.safetensors': No space left on device"));
}

}  // namespace arbalest::jobs
