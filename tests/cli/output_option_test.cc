// Options that name a file to write: --output of export and predict, --prometheus and --trace of train.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "tests/cli/trained_run.h"
#include "tests/support/catch.h"

namespace arbalest::tests {

namespace fs = std::filesystem;

namespace {

// All files below a folder, with their content.
std::vector<std::pair<std::string, std::string>> content_of(const fs::path& folder) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.emplace_back(entry.path().string(), read_text(entry.path()));
  }
  std::ranges::sort(files);
  return files;
}

Completed export_to(const std::string& output) {
  return trained().program().run({"export", "run", "--output", output});
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("output: no command replaces a file of a run by its own") {
  const fs::path run = trained() / "run";
  fs::create_directory_symlink("run", trained() / "link");
  fs::create_directories(trained() / "other");
  write_text(trained() / "other/job.txtpb", "name: \"other\"");
  const auto before = content_of(run);
  REQUIRE(before.size() >= 5);
  const std::string checkpoint = fs::directory_iterator(run / "checkpoints")->path().filename().string();
  for (const std::string& name :
       {std::string("run/job.txtpb"), std::string("run/model.safetensors"), std::string("run/best.safetensors"),
        std::string("run/metrics.jsonl"), std::string("run/summary.json"), std::string("run/replay.txtpb"),
        std::string("run/kernels.txtpb"), std::string("run/checkpoints"), std::string("run/checkpoints/new.onnx"),
        "run/checkpoints/" + checkpoint + "/x", std::string("run/tensorboard/train/x"),
        std::string("link/model.safetensors"), std::string("images/../run/./model.safetensors"),
        std::string("other/model.safetensors")}) {
    CAPTURE(name);
    for (const Completed& refused : {export_to(name), trained().predict({"images/a.png", "--output", name})}) {
      CHECK(refused.exit_code == 2);
      CHECK_THAT(refused.err, ContainsSubstring("--output: '" + name + "' ") && ContainsSubstring("name another file"));
    }
  }
  CHECK(content_of(run) == before);
  CHECK_FALSE(fs::exists(trained() / "other/model.safetensors"));
  CHECK(export_to("run/for-phones.onnx").exit_code == 0);  // a name that no run uses
  CHECK(fs::exists(run / "for-phones.onnx"));
  fs::remove(run / "for-phones.onnx");
}

TEST_CASE("output: files that show a run's state do not take the names of its files") {
  const Program program;
  fs::create_directory(program / "run");
  for (const char* option : {"--prometheus", "--trace"}) {
    std::vector<std::string> arguments = kSmall;
    arguments.insert(arguments.end(), {option, "run/summary.json"});
    const Completed refused = program.run(arguments);
    CHECK(refused.exit_code == 2);
    CHECK_THAT(refused.err, ContainsSubstring(std::string(option) + ": 'run/summary.json' is a name that the run"));
  }
  CHECK(fs::is_empty(program / "run"));
}

TEST_CASE("output: a file that cannot be written is named as the user has named it, with one advice") {
  for (const char* name : {"no-such-folder/x.onnx", "/dev/full", "images", "/proc/x"}) {
    CAPTURE(name);
    for (const Completed& refused : {export_to(name), trained().predict({"images/a.png", "--output", name})}) {
      CHECK(refused.exit_code == 2);
      CHECK_THAT(refused.err, ContainsSubstring(std::string("'") + name + "'"));
      CHECK_THAT(refused.err, !ContainsSubstring("partial"));
      CHECK(count(refused.err, "name another") == 1);
    }
  }
}

TEST_CASE("output: what a killed export has left of a file is removed by the next one") {
  write_text(trained() / "k.onnx.partial-4711", "half");
  write_text(trained() / "k.onnx.partial-4712", "another process writes here");
  write_text(trained() / "k.onnx.partial-notes", "somebody's");
  write_text(trained() / "other.onnx.partial-4711", "of another file");
  const int held = open((trained() / "k.onnx.partial-4712").c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(held >= 0);
  REQUIRE(flock(held, LOCK_EX) == 0);
  CHECK(export_to("k.onnx").exit_code == 0);
  CHECK_FALSE(fs::exists(trained() / "k.onnx.partial-4711"));
  for (const char* name : {"k.onnx.partial-4712", "k.onnx.partial-notes", "other.onnx.partial-4711"}) {
    CHECK(fs::remove(trained() / name));
  }
  close(held);
}

}  // namespace arbalest::tests
