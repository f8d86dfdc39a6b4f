// Teams of learners, and what rules them out.
#include "options/readers/team_check.h"

#include "tests/jobs/job_text.h"

namespace arbalest::jobs {

namespace {

// A job of `learners` on each of two GPUs; a job text could only name GPUs that are there.
JobOptions job_of(std::vector<int> learners, int team, sma::Scheme scheme = sma::Scheme::kSma) {
  JobOptions options;
  options.devices = {{"cuda:0", {}, 0}, {"cuda:1", {}, 1}};
  options.learners_per_device = std::move(learners);
  options.team = team;
  options.synchronization = sma::defaults_of(scheme);
  options.synchronization_path = "synchronization." + std::string(sma::name_of(scheme));
  return options;
}

// Returns the issue of the job's team; "" if there is none.
std::string problem(JobOptions options, bool is_split = false) {
  dataflow::FieldIssues issues;
  check_team(options, is_split, issues);
  if (issues.empty()) return "";
  CHECK(issues.all().front().path == "learners.per_device.team");
  return issues.all().front().message;
}

}  // namespace

TEST_CASE("a team divides the learners of every device") {
  CHECK(problem(job_of({8, 8}, 4)).empty());
  CHECK(problem(job_of({8, 8}, 8)).empty());
  CHECK(problem(job_of({7, 5}, 1)).empty());
  CHECK(problem(job_of({8, 8}, 3)) == "8 learners cannot be divided into teams of 3; the largest that works is 2");
  CHECK(problem(job_of({8, 6}, 4)) == "6 learners cannot be divided into teams of 4; the largest that works is 2");
  CHECK(problem(job_of({4, 4}, 8)) ==
        "a team of 8 is larger than the 4 learners of a device; the largest that works is 4");
}

TEST_CASE("a team follows a number of learners that changes") {
  JobOptions searched = job_of({1, 1}, 8);
  searched.tuned = LearnerBounds{.min = 1, .max = 12};
  CHECK(problem(searched).empty());
  JobOptions growing = job_of({1, 1}, 8);
  growing.schedule = {{0, {1, 1}}, {100, {6, 6}}};
  CHECK(problem(growing).empty());
}

TEST_CASE("the size of teams is searched with the number of learners, unless the job or a scheme decides it") {
  const auto is_searched = [](JobOptions options, bool is_split = false) {
    options.tuned = LearnerBounds{.min = 1, .max = 12};
    options.tunes_team = true;
    CHECK(problem(options, is_split).empty());
    dataflow::FieldIssues issues;
    check_team(options, is_split, issues);
    return options.tunes_team;
  };
  CHECK(is_searched(job_of({1, 1}, 1)));
  CHECK_FALSE(is_searched(job_of({1, 1}, 1), /*is_split=*/true));
  CHECK_FALSE(is_searched(job_of({1, 1}, 1, sma::Scheme::kAsyncSgd)));
  JobOptions on_cpu = job_of({1, 1}, 1);
  on_cpu.devices[1] = {"cpu:0-1", {0, 1}, -1};
  CHECK_FALSE(is_searched(on_cpu));
  CHECK_FALSE(parse(changed("fixed: 2", "auto {}"), {"devices=cpu"}).tunes_team);
}

TEST_CASE("a number of learners that replaces the job's gets teams that divide it") {
  using Settings = std::vector<std::string>;
  CHECK(learner_settings(job_of({8, 8}, 1), 3) == Settings{"learners.per_device.fixed=3"});
  CHECK(learner_settings(job_of({8, 8}, 4), 6) ==
        Settings{"learners.per_device.fixed=6", "learners.per_device.team=3"});
  CHECK(learner_settings(job_of({8, 8}, 4), 7) ==
        Settings{"learners.per_device.fixed=7", "learners.per_device.team=1"});
}

TEST_CASE("teams are refused where each learner goes its own way") {
  JobOptions on_cpu = job_of({4, 4}, 2);
  on_cpu.devices[1] = {"cpu:0-1", {0, 1}, -1};
  CHECK(
      problem(on_cpu) ==
      "no teams of 2: learners on a CPU have threads of their own, and 'cpu:0-1' is one; remove team, or set it to 1");
  CHECK_THAT(problem(job_of({4, 4}, 2, sma::Scheme::kAsyncSgd)),
             ContainsSubstring("under synchronization.async_sgd each learner takes its steps when it is ready"));
  CHECK_THAT(problem(job_of({4, 4}, 2), true), ContainsSubstring("shares layers with others has one learner"));
}

TEST_CASE("a team in a job file is checked with line and column") {
  CHECK_THAT(refusal(changed("fixed: 2", "fixed: 2 team: 2"), {"devices=cpu"}),
             ContainsSubstring("job.txtpb:6:34: error: no teams of 2: learners on a CPU have threads"));
  CHECK_THAT(refusal(changed("fixed: 2", "fixed: 2 team: 0"), {"devices=cpu"}),
             ContainsSubstring("job.txtpb:6:34: error: team must be in [1, 1024], not 0"));
  CHECK(parse(changed("fixed: 2", "fixed: 2 team: 1"), {"devices=cpu"}).team == 1);
}

}  // namespace arbalest::jobs
