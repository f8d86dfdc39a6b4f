// Names of files, folders and runs that would give orders to a terminal.
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/support/catch.h"
#include "tests/support/small_datasets.h"

namespace arbalest::tests {
namespace {

// The title of the terminal's window, and red text, as two characters and as one.
const std::string kHostile = "x\x1b]0;title\x07\x1b[31m\u009b31m";

void check_harmless(const Completed& ended) {
  for (const std::string& text : {ended.out, ended.err}) {
    INFO(text);
    CHECK(text.find('\x1b') == std::string::npos);
    CHECK(text.find('\x07') == std::string::npos);
    CHECK(text.find("\u009b") == std::string::npos);
  }
}

TEST_CASE("names from outside: errors and results about files show no control characters") {
  const Program program;
  const std::string name = kHostile + ".txtpb";
  check_harmless(program.run({"validate", name}));
  write_text(program / name, "model { zoo { lenet {} } } data { digits {} } learning_rate { base: 0.1 }\n");
  const Completed valid = program.run({"validate", name});
  CHECK(valid.exit_code == 0);
  CHECK_THAT(valid.out, ContainsSubstring("x?]0;title") && ContainsSubstring(": valid\n"));
  check_harmless(valid);
  check_harmless(program.run({"train", name, "--output", kHostile, "--resume", kHostile}));
  check_harmless(program.run({"evaluate", kHostile}));
  check_harmless(program.run({"predict", kHostile, kHostile}));
  check_harmless(program.run({"import", kHostile}));
  check_harmless(program.run({"data", "verify", kHostile}));
  check_harmless(program.run({"runs", kHostile}));
  check_harmless(program.run({kHostile}));
  check_harmless(program.run({"train", name, "--set", kHostile}));
}

TEST_CASE("names from outside: folders of classes, images and runs show no control characters") {
  const Program program;
  for (const char* split : {"train", "test"}) {
    for (int i = 0; i < 6; ++i) {
      const std::filesystem::path folder = program.directory() / "set" / split / (i % 2 == 0 ? kHostile : "plain");
      std::filesystem::create_directories(folder);
      write_text(folder / (std::to_string(i) + kHostile + ".png"), i == 4 ? "no image" : png(gradient(12, 10, 3, i)));
    }
  }
  write_text(
      program / "job.txtpb",
      "model { zoo { logistic_regression {} } } data { images { directory: './set' classes: 2 decoding { height: 8 "
      "width: 8 resize: 9 on_unreadable: SKIP max_skipped: 0.5 } } }\n"
      "training { batch_size: 2 max_epochs: 1 } learning_rate { base: 0.01 } learners { per_device { fixed: 1 } }\n");
  const Completed trained = program.run({"train", "job.txtpb", "--output", "runs/" + kHostile});
  INFO(trained.err);
  CHECK(trained.exit_code == 0);
  CHECK_THAT(trained.err, ContainsSubstring("cannot be read") || ContainsSubstring("could not be read"));
  check_harmless(trained);
  const std::string run = "runs/" + kHostile;
  check_harmless(program.run({"evaluate", run, "--classes"}));
  const Completed runs = program.run({"runs"});
  CHECK(runs.exit_code == 0);
  check_harmless(runs);
  const std::string image = "set/test/" + kHostile + "/0" + kHostile + ".png";
  check_harmless(program.run({"predict", run, image, "--format", "text"}));
  const Completed csv = program.run({"predict", run, image, "--format", "csv"});
  CHECK(csv.exit_code == 0);
  check_harmless(csv);
  const Completed json = program.run({"predict", run, image, "--format", "jsonl"});
  CHECK(nlohmann::json::parse(json.out).at("file") == image);  // programs get the name as it is
  check_harmless(program.run({"data", "verify", "job.txtpb"}));
  check_harmless(program.run({"inspect", "job.txtpb"}));
}

}  // namespace
}  // namespace arbalest::tests
