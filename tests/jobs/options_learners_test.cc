// The number of learners in a job: a number, bounds, or a schedule.
#include "options/readers/learners_reader.h"

#include <tuple>

#include "engine/backends/devices.h"
#include "tests/jobs/job_text.h"

namespace arbalest::jobs {

namespace {

std::string with_learners_of(std::string_view count) {
  return changed("learners { per_device { fixed: 2 } }",
                 "devices: \"cpu\"\nlearners { per_device { " + std::string(count) + " } }");
}

}  // namespace

TEST_CASE("missing bounds of learners follow from device and data") {
  const JobOptions job = parse(with_learners_of("auto {}"));
  REQUIRE(job.tuned.has_value());
  CHECK(job.learners_are_given);
  CHECK(job.tuned->min == 1);
  CHECK(job.tuned->max == 2 * engine::core_count(job.devices[0]));
  CHECK(job.learners_per_device == std::vector<int>{1});
  CHECK(most_learners(job) == job.tuned->max);
  CHECK(may_resize(job));
  CHECK_FALSE(may_resize(parse(std::string(kGoodJob))));

  const JobOptions bounded = parse(with_learners_of("auto { min: 3 max: 5 }"));
  CHECK(bounded.tuned->min == 3);
  CHECK(bounded.tuned->max == 5);
  CHECK(bounded.learners_per_device == std::vector<int>{3});

  // 20,000 examples: an epoch has two mini-batches.
  CHECK(parse(with_learners_of("auto {}"), {"training.batch_size=10000"}).tuned->max <= 2);
}

TEST_CASE("the auto-tuner's default objective is throughput") {
  const JobOptions silent = parse(with_learners_of("auto {}"));
  CHECK(silent.tuned->objective == TuningObjective::kThroughput);
  CHECK_THAT(silent.resolved_text, ContainsSubstring("objective: THROUGHPUT"));
  CHECK(parse(silent.resolved_text).resolved_text == silent.resolved_text);
  const JobOptions goodput = parse(with_learners_of("auto { max: 4 objective: GOODPUT }"));
  CHECK(goodput.tuned->objective == TuningObjective::kGoodput);
  CHECK(parse(goodput.resolved_text).tuned->objective == TuningObjective::kGoodput);
  for (const std::string wrong : {"OBJECTIVE_UNSPECIFIED", "SPEED"}) {
    CHECK_THAT(refusal(with_learners_of("auto { objective: " + wrong + " }")),
               ContainsSubstring("job.txtpb:7:") &&
                   ContainsSubstring("'" + wrong + "' is not a value of objective (values: THROUGHPUT, GOODPUT)"));
  }
}

TEST_CASE("a fixed alpha limits the number of learners") {
  const JobOptions job = parse(with_learners_of("auto { max: 64 }") + "synchronization { sma { alpha: 0.5 } }\n");
  CHECK(job.tuned->max == 5);  // 0.5 k < (1 + 0.7) (2 - 0.5)
  REQUIRE(job.warnings.size() == 1);
  CHECK_THAT(job.warnings[0], ContainsSubstring("learners.per_device.auto.max: there will be at most 5 learners") &&
                                  ContainsSubstring("6 learners with alpha 0.5"));
  // Without a bound in the job, the search would go up to twice the cores. This alpha allows 2 learners.
  const JobOptions lowered = parse(with_learners_of("auto {}") + "synchronization { sma { alpha: 0.9 } }\n");
  CHECK(lowered.tuned->max == 2);
  CHECK(lowered.warnings.size() == (engine::core_count(lowered.devices.front()) > 1 ? 1 : 0));
  CHECK_THAT(refusal(with_learners_of("auto { min: 8 }") + "synchronization { sma { alpha: 0.5 } }\n"),
             ContainsSubstring("8 learners with alpha 0.5"));
}

TEST_CASE("bounds of learners that exclude each other or the data are refused") {
  for (const auto& [bounds, message] : std::vector<std::pair<std::string, std::string>>{
           {"auto { min: 5 max: 4 }", "min must not be above max: 5 is above 4"},
           {"auto { min: 0 }", "min must be in [1, 1024], not 0"},
           {"auto { max: 0 }", "max must be in [1, 1024], not 0"},
           {"auto { max: -3 }", "max must be in [1, 1024], not -3"},
           {"auto { min: 2000 }", "min must be in [1, 1024], not 2000"},
           {"auto { max: 626 }", "a round of 626 learners with period 1 needs 626 mini-batches, but an epoch has 625"},
           {"auto { min: 700 max: 800 }", "a round of 700 learners"}}) {
    CAPTURE(bounds);
    CHECK_THAT(refusal(with_learners_of(bounds)), ContainsSubstring("job.txtpb:7:") && ContainsSubstring(message));
  }
  CHECK_THAT(refusal(std::string(kGoodJob), {"learners.per_device.auto={min: 4 max: 2}"}, engine::ErrorKind::kUsage),
             ContainsSubstring("min must not be above max"));
}

TEST_CASE("a schedule of learners is read, and a run with bounds writes one") {
  const JobOptions job = parse(with_learners_of("schedule { step { learners: 2 } step { at_batch: 10 learners: 4 } }"));
  REQUIRE(job.schedule.size() == 2);
  CHECK(job.schedule[1].at_batch == 10);
  CHECK(job.schedule[1].per_device == std::vector<int>{4});
  CHECK(job.learners_per_device == std::vector<int>{2});
  CHECK(most_learners(job) == 4);

  const JobOptions tuned = parse(with_learners_of("auto {}"));
  CHECK_THAT(with_schedule(tuned.resolved_text, job.schedule, 2), ContainsSubstring("team: 2"));
  const JobOptions replay = parse(with_schedule(tuned.resolved_text, job.schedule));
  CHECK_FALSE(replay.tuned.has_value());
  REQUIRE(replay.schedule.size() == 2);
  CHECK(replay.schedule[1].at_batch == 10);
  CHECK(replay.schedule[1].per_device == std::vector<int>{4});
}

TEST_CASE("an impossible schedule of learners is refused") {
  for (const auto& [schedule, message] : std::vector<std::pair<std::string, std::string>>{
           {"schedule {}", "the schedule has no step"},
           {"schedule { step { at_batch: 3 learners: 2 } }", "the first step must be at mini-batch 0, not 3"},
           {"schedule { step { learners: 2 } step { at_batch: 0 learners: 1 } }", "0 does not follow 0"},
           {"schedule { step { learners: 2 } step { at_batch: -4 learners: 1 } }", "-4 does not follow 0"},
           {"schedule { step { learners: 0 } }", "learners[0] must be in [1, 1024], not 0"},
           {"schedule { step {} }", "learners names 0 devices, but the job has 1"},
           {"schedule { step { learners: 1 learners: 1 } }", "learners names 2 devices, but the job has 1"},
           {"schedule { step { learners: 1 } step { at_batch: 4 learners: 900 } }", "a round of 900 learners"}}) {
    CAPTURE(schedule);
    CHECK_THAT(refusal(with_learners_of(schedule)), ContainsSubstring("job.txtpb:7:") && ContainsSubstring(message));
  }
}

TEST_CASE("a step within a round is refused at its position, with the nearest valid steps") {
  for (const auto& [schedule, more, message] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"schedule { step { learners: 4 } step { at_batch: 6 learners: 2 } }", "",
            "from mini-batch 0 on each round of 4 learners with period 1 has 4 mini-batches: 6 lies within one; did "
            "you "
            "mean 4 or 8?"},
           {"schedule { step { learners: 4 } step { at_batch: 3 learners: 2 } }", "", "did you mean 4?"},
           {"schedule { step { learners: 3 } step { at_batch: 9 learners: 2 } step { at_batch: 12 learners: 1 } }", "",
            "from mini-batch 9 on each round of 2 learners with period 1 has 2 mini-batches: 12 lies within one; did "
            "you "
            "mean 11 or 13?"},
           {"schedule { step { learners: 4 } step { at_batch: 8 learners: 2 } }",
            "synchronization { sma { period: 3 } }\n", "did you mean 12?"}}) {
    CAPTURE(schedule);
    const std::string said = refusal(with_learners_of(schedule) + more);
    CHECK_THAT(said, ContainsSubstring("job.txtpb:7:") && ContainsSubstring(message));
  }
  const std::string two =
      refusal(with_learners_of("schedule { step { learners: 4 }\nstep { at_batch: 6 learners: 2 }\n"
                               "step { at_batch: 9 learners: 1 } }"));
  CHECK_THAT(two, ContainsSubstring("job.txtpb:8:8: ") && ContainsSubstring("job.txtpb:9:8: "));
  // This also holds if the data's size is unknown.
  CHECK_THAT(refusal(with_learners_of("schedule { step { learners: 4 } step { at_batch: 6 learners: 2 } }"),
                     {"data={images { directory: 'own' classes: 2 decoding { height: 28 width: 28 } }}"}),
             ContainsSubstring("did you mean 4 or 8?"));
  // Rounds continue from one epoch, here of 625 mini-batches, to the next.
  CHECK(
      parse(with_learners_of("schedule { step { learners: 2 } step { at_batch: 626 learners: 1 } }")).warnings.empty());
}

TEST_CASE("steps after the end of the run are a warning") {
  const auto warnings = [](const std::string& steps) {
    return parse(with_learners_of("schedule { step { learners: 1 } " + steps + " }")).warnings;
  };
  CHECK(warnings("step { at_batch: 6249 learners: 2 }").empty());  // 10 epochs of 625
  REQUIRE(warnings("step { at_batch: 6250 learners: 2 }").size() == 1);
  CHECK_THAT(warnings("step { at_batch: 6250 learners: 2 }").front(),
             ContainsSubstring("step[1] stands at mini-batch 6250, but the run ends after 6250 (10 epochs): it has no "
                               "effect"));
  REQUIRE(warnings("step { at_batch: 4 learners: 2 } step { at_batch: 10000 learners: 1 } step { at_batch: 10001 "
                   "learners: 2 }")
              .size() == 1);
  CHECK_THAT(warnings("step { at_batch: 4 learners: 2 } step { at_batch: 10000 learners: 1 } step { at_batch: 10001 "
                      "learners: 2 }")
                 .front(),
             ContainsSubstring("step[2] stands at mini-batch 10000") &&
                 ContainsSubstring("it and what follows it have no effect"));
}

TEST_CASE("a search whose scheme allows few learners gives a warning") {
  const auto warnings = [](const std::string& synchronization) {
    return parse(with_learners_of("auto {}") + "synchronization { " + synchronization + " }").warnings;
  };
  CHECK(warnings("local_sgd {}").empty());
  // An epoch has 625 mini-batches.
  REQUIRE(warnings("local_sgd { period: 400 }").size() == 1);
  CHECK_THAT(warnings("local_sgd { period: 400 }").front(),
             ContainsSubstring("learners.per_device.auto: there will be at most 1 learner of each device: a round of 2 "
                               "learners with period 400 needs 800 mini-batches, but an epoch has 625"));
}

TEST_CASE("a job that continues with fewer learners keeps its warnings and what a run changed in it") {
  JobOptions job = parse(with_learners_of("fixed: 4"));
  job.warnings = {"an earlier warning"};
  job.checkpoint.keep_last = 0;
  job.training.divergence.rolls_back = true;
  job.data.pixels.is_reduced = true;
  const JobOptions fewer = with_learners(job, 2, "why");
  CHECK(fewer.learners_per_device == std::vector<int>{2});
  CHECK(fewer.warnings == std::vector<std::string>{"why", "an earlier warning"});
  CHECK(fewer.checkpoint.keep_last == 0);
  CHECK(fewer.training.divergence.rolls_back);
  CHECK(fewer.data.pixels.is_reduced);
}

}  // namespace arbalest::jobs
