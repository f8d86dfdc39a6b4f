// Runs that go on with a larger training.max_epochs than they began with, through jobs::train.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "saved_model/run_files.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/watched_run.h"

namespace arbalest::tests {

namespace {

using Settings = std::vector<std::string>;

jobs::JobOptions job_with(Settings settings, int max_epochs) {
  settings.push_back("training.max_epochs=" + std::to_string(max_epochs));
  return short_job("logistic-digits.txtpb", settings);
}

// The job with all defaults that the run in `directory` has left.
jobs::JobOptions saved_job(const TemporaryDirectory& directory) {
  return jobs::load_job((directory.path() / jobs::kJobFile).string());
}

// Trains 2 epochs and then up to 5, and returns the second part. `looks`: as in PartOptions, of the first part.
Part extended(const Settings& settings, const TemporaryDirectory& output, int looks = kNever) {
  train_part(job_with(settings, 2), output.path(), {.looks = looks});
  return train_part(job_with(settings, 5), output.path());
}

std::string planned(const jobs::JobOptions& job) {
  const TemporaryDirectory output;
  return train_part(job, output.path()).summary.model_sha256;
}

std::vector<double> rates_of(const Part& part) {
  std::vector<double> rates;
  for (const jobs::EpochRow& row : part.rows) rates.push_back(row.learning_rate);
  return rates;
}

}  // namespace

TEST_CASE("an extended run whose schedule has no end has the bytes of one that planned all epochs", "[checkpoint]") {
  for (const std::string schedule :
       {"fixed={}", "step={epochs: 1 factor: 0.5}",
        "multistep={drop {epoch: 1.5 factor: 0.3} drop {epoch: 3 factor: 0.3}}", "exponential={factor: 0.7}",
        "inverse={gamma: 0.5}", "cyclic={epochs: 1.5}", "plateau={patience: 0}"}) {
    CAPTURE(schedule);
    const Settings settings = {"learning_rate." + schedule};
    const TemporaryDirectory output;
    const Part part = extended(settings, output);
    CHECK(part.summary.epochs == 5);
    CHECK(part.summary.model_sha256 == planned(job_with(settings, 5)));
  }
}

TEST_CASE("an extended run whose schedule has ended starts it anew, and its saved job says all of that",
          "[checkpoint]") {
  for (const std::string schedule : {"cosine={}", "cosine={final_factor: 0.1}", "one_cycle={}", "polynomial={}"}) {
    for (const Settings& more : {Settings{}, Settings{"learning_rate.warm_up={epochs: 0.5}"}}) {
      CAPTURE(schedule, more);
      Settings settings = {"learning_rate." + schedule};
      settings.insert(settings.end(), more.begin(), more.end());
      const TemporaryDirectory output;
      const Part part = extended(settings, output);
      CHECK(part.summary.epochs == 5);
      const jobs::JobOptions saved = saved_job(output);
      REQUIRE(saved.learning_rate.restarts.size() == 1);
      CHECK(saved.learning_rate.restarts[0].epoch == 2.0);
      CHECK(saved.learning_rate.restarts[0].epochs == 3.0);
      CHECK(saved.learning_rate.at(1.5, 2) == job_with(settings, 2).learning_rate.at(1.5, 2));
      // The rates of epochs 3 and 4 are those of a schedule of 3 epochs.
      CHECK(std::ranges::all_of(rates_of(part), [](double rate) { return rate > 0.0; }));
      CHECK(part.summary.model_sha256 == planned(saved));
      CHECK(part.summary.model_sha256 ==
            planned(job_with({settings.front(), settings.back(), "learning_rate.restart={epoch: 2}"}, 5)));
    }
  }
}

TEST_CASE("a run may be extended again, stopped anywhere, and go on with the same command", "[checkpoint]") {
  const Settings settings = {"learning_rate.cosine={}"};
  const TemporaryDirectory output;
  extended(settings, output);
  CHECK(train_part(job_with(settings, 9), output.path(), {.looks = 400}).summary.status == jobs::RunStatus::kStopped);
  const Part last = train_part(job_with(settings, 9), output.path());
  CHECK(last.summary.epochs == 9);
  const jobs::JobOptions saved = saved_job(output);
  REQUIRE(saved.learning_rate.restarts.size() == 2);
  CHECK(saved.learning_rate.restarts[1].epoch == 5.0);
  CHECK(saved.learning_rate.restarts[1].epochs == 4.0);
  CHECK(last.summary.model_sha256 == planned(saved));
}

TEST_CASE("a job that names its restarts, as a saved one does, gets one more for the epochs that are added",
          "[checkpoint]") {
  for (const std::string length : {"", "epochs: 3"}) {
    CAPTURE(length);
    const Settings settings = {"learning_rate.cosine={epochs: 2}", "learning_rate.restart={epoch: 2 " + length + "}"};
    const TemporaryDirectory output;
    train_part(job_with(settings, 5), output.path());
    const Part part = train_part(job_with(settings, 9), output.path());
    CHECK(part.summary.epochs == 9);
    CHECK(std::ranges::all_of(rates_of(part), [](double rate) { return rate > 0.0; }));
    const jobs::JobOptions saved = saved_job(output);
    REQUIRE(saved.learning_rate.restarts.size() == 2);
    CHECK((saved.learning_rate.restarts[1].epoch == 5.0 && saved.learning_rate.restarts[1].epochs == 4.0));
    CHECK(part.summary.model_sha256 == planned(saved));
  }
}

TEST_CASE("a run that is extended before its end finishes its schedule first", "[checkpoint]") {
  const Settings settings = {"learning_rate.cosine={}"};
  const TemporaryDirectory stopped;
  const Part part = extended(settings, stopped, 700);
  REQUIRE(part.resumed);
  CHECK(part.resumed->epoch < 2.0);
  const TemporaryDirectory whole;
  CHECK(part.summary.model_sha256 == extended(settings, whole).summary.model_sha256);

  // A run that ends earlier than planned does not follow another schedule, either.
  const TemporaryDirectory shorter;
  train_part(job_with(settings, 5), shorter.path(), {.looks = 700});
  const Part ended = train_part(job_with(settings, 2), shorter.path());
  CHECK(ended.summary.epochs == 2);
  const Settings four = {"learning_rate.cosine={epochs: 5}"};
  CHECK(ended.summary.model_sha256 == planned(job_with(four, 2)));
  // So it can go on as it was planned.
  CHECK(train_part(job_with(settings, 5), shorter.path()).summary.model_sha256 == planned(job_with(settings, 5)));
}

TEST_CASE("what a job says about its schedule is kept when it is extended", "[checkpoint]") {
  // The last rate of a schedule that ended before the run goes on, and one that was to end later goes on, too.
  for (const std::string length : {"epochs: 1 final_factor: 0.2", "epochs: 5", "epochs: 6"}) {
    CAPTURE(length);
    const Settings settings = {"learning_rate.cosine={" + length + "}"};
    const TemporaryDirectory output;
    CHECK(extended(settings, output).summary.model_sha256 == planned(job_with(settings, 5)));
    CHECK(saved_job(output).learning_rate.restarts.empty());
  }
  const Settings before = {"learning_rate.cosine={}"};
  const Settings low = {"learning_rate.cosine={}", "learning_rate.restart={epoch: 2 factor: 0.25}"};
  const TemporaryDirectory output;
  train_part(job_with(before, 2), output.path());
  const Part part = train_part(job_with(low, 5), output.path());
  CHECK(part.rows.front().learning_rate < 0.25 * std::sqrt(2.0) * 0.01);
  CHECK(part.summary.model_sha256 == planned(job_with(low, 5)));
  const auto ignore = [](const std::string&) {};
  CHECK_THROWS_WITH(
      jobs::newest_resume_point(output.path(),
                                job_with({"learning_rate.cosine={}", "learning_rate.restart={epoch: 3}"}, 9), ignore),
      ContainsSubstring("learning_rate.restart[0].epoch: 2 in the checkpoint, 3 in the job"));
  CHECK_THROWS_WITH(jobs::newest_resume_point(output.path(), job_with({"learning_rate.cosine={epochs: 9}"}, 9), ignore),
                    ContainsSubstring("learning_rate.cosine.epochs: 2 in the checkpoint, 9 in the job") &&
                        ContainsSubstring("keeps its value if the job leaves it out"));
}

TEST_CASE("the other defaults that follow from the epochs keep their values, too", "[checkpoint]") {
  const Settings growth = {"learning_rate.cosine={}", "learners.per_device={growth {to: 4}}"};
  const TemporaryDirectory grown;
  const Part part = extended(growth, grown);
  CHECK(part.summary.learners_per_device == std::vector<int>{4});
  CHECK_THAT(saved_job(grown).resolved_text, ContainsSubstring("epochs: 1.2\n"));
  CHECK(part.summary.model_sha256 == planned(saved_job(grown)));

  const Settings server = {"synchronization={async_sgd {staleness: 1 push_every: 1}}", "learners.per_device.fixed=1"};
  const TemporaryDirectory served;
  train_part(job_with(server, 1), served.path());
  CHECK(train_part(job_with(server, 3), served.path()).summary.epochs == 3);
  CHECK_THAT(saved_job(served).resolved_text, ContainsSubstring("warm_start_epochs: 0\n"));
}

TEST_CASE("a restart comes with the first round after the epochs that are whole", "[checkpoint]") {
  // Rounds of 2 x 7 mini-batches do not divide an epoch of 625: the last round of a run goes on beyond its end.
  for (const std::string scheme : {"sma {period: 7}", "local_sgd {period: 7}", "s_sgd {}"}) {
    CAPTURE(scheme);
    const Settings settings = {"learning_rate.one_cycle={}", "synchronization={" + scheme + "}"};
    const TemporaryDirectory output;
    const Part part = extended(settings, output);
    CHECK(part.summary.model_sha256 == planned(saved_job(output)));
  }
}

}  // namespace arbalest::tests
