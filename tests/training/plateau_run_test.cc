// Whole runs whose learning rate drops where the score stops improving.
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/watched_run.h"
#include "train/inspection.h"
#include "train/live/plateau.h"

namespace arbalest::tests {

namespace {

using jobs::PlateauState;
using scheduler::Plateau;

// The factor after each epoch with these scores.
std::vector<double> factors(const Plateau& rule, const std::vector<double>& scores, bool smaller_is_better = false,
                            int warm_up = 0) {
  PlateauState state;
  std::vector<double> factors;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    jobs::count_epoch(rule, scores[i], {smaller_is_better}, static_cast<int>(i) + 1 >= warm_up, state);
    factors.push_back(state.factor);
  }
  return factors;
}

Part run_with(const std::vector<std::string>& settings, const std::filesystem::path& output) {
  std::vector<std::string> all = {"training.max_epochs=4"};
  all.insert(all.end(), settings.begin(), settings.end());
  return train_part(short_job("logistic-digits.txtpb", all), output);
}

}  // namespace

TEST_CASE("the learning rate drops after more epochs without an improvement than the patience allows", "[plateau]") {
  const Plateau rule{.factor = 0.5, .patience = 1, .min_improvement = 0.01};
  //                      best  bad   bad   best  bad   bad  bad   bad
  CHECK(factors(rule, {0.50, 0.505, 0.50, 0.60, 0.55, 0.6, 0.609, 0.6}) ==
        std::vector<double>{1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.125});
  // The improvement is measured from the best score, not from the last.
  CHECK(factors(rule, {0.500, 0.508, 0.512, 0.50}) == std::vector<double>{1, 1, 1, 1});
  CHECK(factors({.factor = 0.1, .patience = 0, .min_improvement = 0.0}, {0.5, 0.5, 0.6}) ==
        std::vector<double>{1, 0.1, 0.1});
}

TEST_CASE("an error that should be small falls to improve", "[plateau]") {
  const Plateau rule{.factor = 0.5, .patience = 0, .min_improvement = 0.0};
  CHECK(factors(rule, {0.9, 0.8, 0.85, 0.7}, true) == std::vector<double>{1, 1, 0.5, 0.5});
}

TEST_CASE("epochs of the cooldown and of the warm-up are not judged, and the factor has a minimum", "[plateau]") {
  const Plateau rule{.factor = 0.5, .patience = 0, .min_improvement = 0.0, .cooldown = 2, .min_factor = 0.3};
  //                    best bad  cool cool bad  cool cool bad
  CHECK(factors(rule, {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5}) ==
        std::vector<double>{1, 0.5, 0.5, 0.5, 0.3, 0.3, 0.3, 0.3});
  CHECK(factors({.factor = 0.5, .patience = 0}, {0.5, 0.5, 0.5, 0.5}, false, 3) ==
        std::vector<double>{1, 1, 0.5, 0.25});
}

TEST_CASE("a drop on a plateau trains like a drop that the job places there", "[plateau]") {
  // No epoch improves by 1, so the rate drops after every epoch but the first.
  for (const char* scheme : {"sma {}", "ea_sgd {}", "s_sgd {}", "local_sgd { period: 7 }"}) {
    CAPTURE(scheme);
    const std::string synchronization = std::string("synchronization={") + scheme + "}";
    const TemporaryDirectory first;
    const Part judged =
        run_with({synchronization, "learning_rate={base: 0.02 plateau { factor: 0.5 patience: 1 min_improvement: 1 }}"},
                 first.path());
    REQUIRE(judged.drops.size() == 1);
    CHECK(judged.drops[0].epoch == Approx(3.0).epsilon(0.01));
    CHECK(judged.drops[0].factor == 0.5);
    CHECK(judged.drops[0].learning_rate == Approx(judged.rows[2].learning_rate / 2));
    CHECK(judged.rows[3].learning_rate == judged.drops[0].learning_rate);
    CHECK_THAT(judged.drops[0].reason, ContainsSubstring("2 epochs in a row without an improvement"));

    const TemporaryDirectory second;
    const Part placed = run_with(
        {synchronization, "learning_rate={base: 0.02 multistep { drop { epoch: 3 factor: 0.5 } }}"}, second.path());
    CHECK(judged.summary.model_sha256 == placed.summary.model_sha256);
    CHECK(judged.rows[3].train.value("loss") == placed.rows[3].train.value("loss"));
  }
}

TEST_CASE("the validation set judges the plateau if there is one", "[plateau]") {
  const TemporaryDirectory output;
  const Part part = run_with({"learning_rate={base: 0.02 plateau { patience: 0 min_improvement: 0.05 }}",
                              "data.validation.fraction=0.1", "training.max_epochs=6"},
                             output.path());
  PlateauState state;
  std::vector<double> expected;
  for (const jobs::EpochRow& row : part.rows) {
    expected.push_back(state.factor);
    jobs::count_epoch({.patience = 0, .min_improvement = 0.05}, row.validation.value("accuracy"), {}, true, state);
  }
  REQUIRE(expected.back() < 1.0);
  for (std::size_t i = 0; i < part.rows.size(); ++i) {
    CHECK(part.rows[i].learning_rate == Approx(part.rows[0].learning_rate * expected[i]));
  }
}

TEST_CASE("a drop after the last epoch is not told, and a run that goes on from there has it", "[plateau]") {
  const std::vector<std::string> settings = {
      "learning_rate={base: 0.02 plateau { factor: 0.5 patience: 0 min_improvement: 1 }}", "training.max_epochs=2"};
  const TemporaryDirectory output;
  CHECK(run_with(settings, output.path()).drops.empty());
  std::vector<std::string> longer = settings;
  longer.back() = "training.max_epochs=4";
  const Part resumed = run_with(longer, output.path());
  REQUIRE(resumed.rows.size() == 2);
  CHECK(resumed.drops.size() == 1);
  const TemporaryDirectory whole;
  const Part expected = run_with(longer, whole.path());
  CHECK(expected.drops.size() == 2);
  CHECK(resumed.rows[0].learning_rate == expected.rows[2].learning_rate);
  CHECK(resumed.summary.model_sha256 == expected.summary.model_sha256);
}

TEST_CASE("inspecting a job with a plateau says that its plan holds until the first drop", "[plateau]") {
  const auto note = [](const std::string& fields) {
    return jobs::inspect(load("logistic-digits.txtpb", {"learning_rate={base: 0.02 " + fields + "}", "devices=cpu"}))
        .schedule_note;
  };
  CHECK_THAT(note("plateau { factor: 0.5 patience: 2 }"),
             ContainsSubstring("until the first decay step; whenever 3 epochs in a row do not improve the score, it is "
                               "multiplied by 0.5"));
  CHECK(note("").empty());
}

TEST_CASE("a plateau that cannot come before the end of the job is a warning", "[plateau]") {
  const auto warned = [](const std::string& fields, int epochs) {
    const auto job = load("logistic-digits.txtpb",
                          {"learning_rate={base: 0.02 " + fields + "}", fmt::format("training.max_epochs={}", epochs)});
    for (const std::string& warning : job.warnings) {
      if (warning.find("learning_rate.plateau never drops") != std::string::npos) return true;
    }
    return false;
  };
  CHECK(warned("plateau {}", 12));
  CHECK_FALSE(warned("plateau {}", 13));
  CHECK(warned("plateau { patience: 2 } warm_up { epochs: 5 }", 7));
  CHECK_FALSE(warned("plateau { patience: 2 } warm_up { epochs: 5 }", 8));
}

}  // namespace arbalest::tests
