// Nothing is accepted that differs in one bit from what was written (R5 of the scorecard).
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "checkpoint/xxh3.h"
#include "engine/base/error.h"
#include "tests/jobs/checkpoint_rig.h"
#include "tests/support/fault_count.h"

namespace arbalest::jobs {
namespace {

namespace fs = std::filesystem;
using tests::read_text;
using tests::TemporaryDirectory;
using tests::write_text;

const std::vector<std::string> kFiles = {"central.safetensors", "learner-00.safetensors", "manifest.txtpb",
                                         "state.txtpb"};

// Two checkpoints, of which the test damages the newer one.
class Pair {
 public:
  Pair() : older_(write_small(checkpoints(), 1)), newer_(write_small(checkpoints(), 2)) {}

  fs::path checkpoints() const { return run_ / "checkpoints"; }
  const fs::path& newer() const { return newer_; }
  const fs::path& older() const { return older_; }

  // Checks that the newer checkpoint is refused with this text and the name of the file, and that a resume falls back.
  // The newer checkpoint has its name again afterwards.
  void check_refused(const std::string& file, const std::string& text = "") {
    const std::string error = refusal(newer_);
    CHECK_THAT(error,
               ContainsSubstring(file) && ContainsSubstring(text) && ContainsSubstring("use another checkpoint"));
    if (error == "accepted") return;
    std::string warning;
    const auto found = newest_checkpoint(checkpoints(), [&](const std::string& message) { warning += message; });
    REQUIRE(found.has_value());
    CHECK(found->path == older_);
    CHECK(holds_small(*found));
    CHECK_THAT(warning, ContainsSubstring(newer_.string()) && ContainsSubstring(file) &&
                            ContainsSubstring("is now named '000000000002.damaged'"));
    fs::rename(newer_.string() + ".damaged", newer_);
  }

 private:
  TemporaryDirectory run_{memory_directory()};
  fs::path older_;
  fs::path newer_;
};

std::string xxh3_of(const std::string& text) {
  Xxh3 hash;
  hash.update(std::as_bytes(std::span(text)));
  return hash.finish();
}

// A manifest with a valid checksum.
std::string signed_manifest(const std::string& content) { return content + "checksum: \"" + xxh3_of(content) + "\"\n"; }

std::string file_line(const std::string& name, const std::string& content) {
  return "file { name: \"" + name + "\" size: " + std::to_string(content.size()) + " xxh3_128: \"" + xxh3_of(content) +
         "\" }\n";
}

std::size_t header_bytes(const std::string& safetensors) {
  std::uint64_t size = 0;
  std::memcpy(&size, safetensors.data(), sizeof(size));
  return sizeof(size) + size;
}

}  // namespace

TEST_CASE("damaged checkpoint: every file cut off at every length is refused") {
  Pair pair;
  for (const std::string& name : kFiles) {
    const std::string whole = read_text(pair.newer() / name);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      INFO(name << " cut off at " << size);
      write_text(pair.newer() / name, whole.substr(0, size));
      pair.check_refused(name);
    }
    tests::count_faults(static_cast<int>(whole.size()));
    write_text(pair.newer() / name, whole);
  }
  CHECK(refusal(pair.newer()) == "accepted");
}

TEST_CASE("damaged checkpoint: every flipped bit of the manifest, the headers and the texts is refused") {
  Pair pair;
  for (const std::string& name : kFiles) {
    const std::string whole = read_text(pair.newer() / name);
    const std::size_t bytes = name.ends_with(".safetensors") ? header_bytes(whole) : whole.size();
    for (std::size_t bit = 0; bit < 8 * bytes; ++bit) {
      std::string damaged = whole;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
      write_text(pair.newer() / name, damaged);
      const std::string error = refusal(pair.newer());
      if (error.find(name) == std::string::npos) FAIL_CHECK(name << " bit " << bit << ": " << error);
    }
    tests::count_faults(static_cast<int>(8 * bytes));
    write_text(pair.newer() / name, whole);
  }
  CHECK(refusal(pair.newer()) == "accepted");
}

TEST_CASE("damaged checkpoint: random flipped bits of the tensors are refused") {
  const int flips = tests::number_from_environment("ARBALEST_FLIPPED_BITS", 10'000);
  const TemporaryDirectory run(memory_directory());
  CheckpointWriter writer(run.path(), 3);
  writer.add_tensors("central.safetensors",
                     std::vector<dataflow::NamedTensor>{{"w", {4096}, std::vector<float>(4096, 0.5F)}}, {});
  const fs::path path = writer.commit();
  std::string bytes = read_text(path / "central.safetensors");
  const std::size_t begin = header_bytes(bytes);
  std::mt19937_64 random(static_cast<unsigned>(tests::number_from_environment("ARBALEST_FAULT_SEED", 31)));
  for (int flip = 0; flip < flips; ++flip) {
    const std::size_t at = begin + random() % (bytes.size() - begin);
    const int bit = 1 << random() % 8;
    const char before = bytes[at];
    bytes[at] = static_cast<char>(before ^ bit);
    write_text(path / "central.safetensors", bytes);
    const std::string error = refusal(path);
    if (error.find("central.safetensors: its XXH3-128 is") == std::string::npos) FAIL_CHECK(at << ": " << error);
    bytes[at] = before;
  }
  tests::count_faults(flips);
  write_text(path / "central.safetensors", bytes);
  CHECK(refusal(path) == "accepted");
}

TEST_CASE("damaged checkpoint: deleted, emptied, zeroed, grown, swapped and duplicated files are refused") {
  Pair pair;
  for (const std::string& name : kFiles) {
    INFO(name);
    const fs::path path = pair.newer() / name;
    const std::string whole = read_text(path);
    fs::remove(path);
    pair.check_refused(name, "No such file or directory");
    write_text(path, std::string(whole.size(), '\0'));
    pair.check_refused(name);
    write_text(path, whole + '\0');
    pair.check_refused(name);
    fs::remove(path);
    fs::copy_file(pair.older() / name, path);  // from another checkpoint of the same run
    if (name == "manifest.txtpb") {
      // Both manifests are whole, so one of the files is at odds with this one.
      CHECK_THAT(refusal(pair.newer()), ContainsSubstring("the manifest says"));
    } else {
      pair.check_refused(name, "the manifest says");
    }
    for (const std::string& other : kFiles) {  // a copy of a file beside it
      if (other == name) continue;
      fs::remove(path);
      fs::copy_file(pair.newer() / other, path);
      pair.check_refused(name);
    }
    write_text(path, whole);
    CHECK(refusal(pair.newer()) == "accepted");
  }
  fs::rename(pair.newer() / "central.safetensors", pair.newer() / "x");
  fs::rename(pair.newer() / "learner-00.safetensors", pair.newer() / "central.safetensors");
  fs::rename(pair.newer() / "x", pair.newer() / "learner-00.safetensors");
  pair.check_refused("central.safetensors", "the manifest says");
}

TEST_CASE("damaged checkpoint: only regular files of the directory itself are read") {
  Pair pair;
  const fs::path path = pair.newer() / "state.txtpb";
  const fs::path outside = pair.checkpoints() / "outside";
  fs::rename(path, outside);
  SECTION("a symbolic link to the same bytes") {
    fs::create_symlink(outside, path);
    pair.check_refused("state.txtpb", "Too many levels of symbolic links");
  }
  SECTION("a directory") {
    fs::create_directory(path);
    pair.check_refused("state.txtpb", "not a regular file");
  }
  SECTION("a pipe, whose reader would wait") {
    REQUIRE(mkfifo(path.c_str(), 0600) == 0);
    pair.check_refused("state.txtpb", "not a regular file");
  }
  SECTION("a manifest that is a link") {
    fs::rename(outside, path);
    fs::rename(pair.newer() / "manifest.txtpb", outside);
    fs::create_symlink(outside, pair.newer() / "manifest.txtpb");
    pair.check_refused("manifest.txtpb", "symbolic links");
  }
}

TEST_CASE("damaged checkpoint: a file that changes after the check is not used") {
  const TemporaryDirectory run;
  const fs::path path = write_small(run.path(), 1);
  const Checkpoint checkpoint = open_checkpoint(path);
  for (const char* name : {"state.txtpb", "central.safetensors"}) {
    std::string bytes = read_text(path / name);
    bytes[bytes.size() - 2] = static_cast<char>(bytes[bytes.size() - 2] ^ 1);
    write_text(path / name, bytes);
  }
  CHECK_THROWS_AS(jobs::read_text(checkpoint, "state.txtpb"), DamagedCheckpoint);
  CHECK_THROWS_AS(read_tensors(checkpoint, "central.safetensors"), DamagedCheckpoint);
  CHECK_THROWS_WITH(jobs::read_text(checkpoint, "none"), ContainsSubstring("none: the manifest does not list it"));
}

TEST_CASE("damaged checkpoint: hostile manifests with a right checksum are refused") {
  const TemporaryDirectory run;
  const fs::path path = write_small(run.path(), 1);
  const std::string state = read_text(path / "state.txtpb");
  write_text(run / "outside", state);
  const std::string start = "format_version: 1\nbatches: 1\n";
  const std::string good = file_line("state.txtpb", state);
  struct Case {
    std::string content;
    const char* message;
  };
  const std::vector<Case> cases = {
      {start + good, "accepted"},
      {start + file_line("../outside", state), "'../outside' is no name"},
      {start + file_line("/etc/passwd", state), "is no name"},
      {start + file_line("a/b", state), "'a/b' is no name"},
      {start + file_line("..", state), "'..' is no name"},
      {start + file_line(".", state), "'.' is no name"},
      {start + file_line("", state), "'' is no name"},
      {start + file_line(".partial", state), "is no name"},
      {start + file_line("state.txtpb\\000x", state), "is no name"},
      {start + file_line("state txtpb", state), "is no name"},
      {start + file_line(std::string(101, 'a'), state), "is no name"},
      {start + file_line("manifest.txtpb", state), "'manifest.txtpb' is no name"},
      {start + good + good, "'state.txtpb' is listed twice"},
      {start + "file { name: \"state.txtpb\" size: 18446744073709551615 xxh3_128: \"" + xxh3_of(state) + "\" }\n",
       "the manifest says 18446744073709551615"},
      {start + "file { name: \"state.txtpb\" size: -1 xxh3_128: \"" + xxh3_of(state) + "\" }\n", "manifest.txtpb:3"},
      {start + "file { name: \"state.txtpb\" }\n", "lacks name, size or xxh3_128"},
      {start + "file { name: \"state.txtpb\" size: 11 xxh3_128: \"0\" }\n", "is not 32 lower-case"},
      {start + good + "file {\n", "manifest.txtpb:5:1: error: "},
      {start + "other: 1\n" + good, "manifest.txtpb:3:1: error: "},
      {start + std::string(20'000, '{'), "manifest.txtpb:3"},
      {"batches: 1\n" + good, "no format_version"},
      {"format_version: 0\nbatches: 1\n" + good, "no format_version"},
      {"format_version: 1\n" + good, "no number of batches"},
      {std::string("format_version: 1\nbatches: 1\n\0", 30) + good, "manifest.txtpb"},
      {start + good + std::string(std::size_t{1} << 20, ' ') + "\n", "more than a manifest may have"},
  };
  for (const Case& test : cases) {
    INFO(test.content.substr(0, 200));
    write_text(path / "manifest.txtpb", signed_manifest(test.content));
    CHECK_THAT(refusal(path), ContainsSubstring(test.message));
  }
}

TEST_CASE("damaged checkpoint: one of a newer version is not damaged, and nothing is done about it") {
  Pair pair;
  write_text(pair.newer() / "manifest.txtpb",
             signed_manifest("format_version: 2\nbatches: 2\nshard { of: 3 hash: 0x12 } other: \"x\"\nfile: 7\n"));
  const auto check = [&](const std::string& text) {
    CHECK_THAT(text, ContainsSubstring("written by a newer Arbalest (format 2; this program reads format 1)") &&
                         ContainsSubstring(pair.newer().string()) && ContainsSubstring("use that newer version"));
  };
  check(refusal(pair.newer()));
  try {
    newest_checkpoint(pair.checkpoints(), no_warning);
    FAIL_CHECK("accepted");
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kCheckpoint);
    check(error.what());
  }
  int warnings = 0;
  retain(pair.checkpoints(), 1, {}, [&](const std::string& text) {
    ++warnings;
    check(text);
  });
  CHECK(warnings == 1);
  CHECK(names_in(pair.checkpoints()) == std::vector<std::string>{"000000000001", "000000000002"});
}

}  // namespace arbalest::jobs
