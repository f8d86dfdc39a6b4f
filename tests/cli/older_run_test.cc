// A run that version 5a143d63 trained with a switch of schemes, a moving average and a checkpoint within a round, and
// that version's job, are used as that version used them. tests/cli/older_run has the data, the job and the run after
// two epochs; the numbers here are what that version printed.
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/cli/small_run.h"
#include "tests/support/catch.h"

namespace arbalest::tests {

namespace fs = std::filesystem;

namespace {

constexpr double kLoss = 0.0930583377679189;         // after two epochs
constexpr double kLaterLoss = 0.002287951298058033;  // after two more
constexpr double kMargin = 1e-5;                     // processors round differently

// Puts the data, the job and the run into the program's directory, which is the data root, too.
void copy_older_run(Program& program) {
  fs::copy(fs::path(source_directory()) / "tests/cli/older_run", program.directory(), fs::copy_options::recursive);
  for (const auto& entry : fs::recursive_directory_iterator(program.directory())) {
    fs::permissions(entry, fs::perms::owner_write, fs::perm_options::add);
  }
  program.set_environment("ARBALEST_DATA=" + program.directory().string());
}

}  // namespace

TEST_CASE("older run: its model and its checkpoint have the figures that they had") {
  Program program;
  copy_older_run(program);
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--checkpoint", "24"}}) {
    std::vector<std::string> arguments = {"evaluate", "run", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Completed evaluated = program.run(arguments);
    INFO(evaluated.err);
    REQUIRE(evaluated.exit_code == 0);
    const auto figures = nlohmann::json::parse(evaluated.out);
    CHECK(figures["test_loss"].get<double>() == Approx(kLoss).margin(kMargin));
    CHECK(figures["examples"] == 24);
  }
}

TEST_CASE("older run: it goes on, from within a round, as its version did") {
  Program program;
  copy_older_run(program);
  const Completed resumed = program.run(
      {"train", "job.txtpb", "--output", "run", "--resume=auto", "--set", "training.max_epochs=4", "--quiet"});
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  const auto summary = summary_of(program / "run");
  CHECK(summary["mini_batches"] == 48);
  CHECK(summary["test_loss"].get<double>() == Approx(kLaterLoss).margin(kMargin));
}

TEST_CASE("older run: its job means what it meant") {
  Program program;
  copy_older_run(program);
  const Completed trained = program.run({"train", "job.txtpb", "--output", "anew", "--quiet"});
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  CHECK(summary_of(program / "anew")["test_loss"].get<double>() == Approx(kLoss).margin(kMargin));
}

}  // namespace arbalest::tests
