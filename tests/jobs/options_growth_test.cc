// Jobs whose number of learners doubles while they run.
#include <utility>

#include "jobs/options/readers/learners_reader.h"
#include "tests/jobs/job_text.h"

namespace arbalest::jobs {

namespace {

std::string with_growth(std::string_view fields) {
  return changed("learners { per_device { fixed: 2 } }",
                 "devices: \"cpu\"\nlearners { per_device { growth { " + std::string(fields) + " } } }");
}

}  // namespace

TEST_CASE("growth doubles the learners at equal intervals") {
  const JobOptions job = parse(with_growth("to: 6"));  // of 10 epochs
  REQUIRE(job.schedule.size() == 4);
  const std::vector<std::pair<double, int>> expected{{0.0, 1}, {2.0, 2}, {4.0, 4}, {6.0, 6}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    REQUIRE(job.schedule[i].at_epoch.has_value());
    CHECK_THAT(*job.schedule[i].at_epoch, Catch::Matchers::WithinAbs(expected[i].first, 1e-12));
    CHECK(job.schedule[i].per_device == std::vector<int>{expected[i].second});
  }
  CHECK(job.learners_per_device == std::vector<int>{1});
  CHECK(job.learners_are_given);
  CHECK(most_learners(job) == 6);
  CHECK(may_resize(job));
  CHECK_THAT(job.resolved_text, ContainsSubstring("from: 1") && ContainsSubstring("epochs: 6"));
  CHECK(parse(job.resolved_text).resolved_text == job.resolved_text);

  const JobOptions given = parse(with_growth("from: 4 to: 8 epochs: 2.5"));
  REQUIRE(given.schedule.size() == 2);
  CHECK(given.schedule[1].at_epoch == 2.5);
  CHECK(given.schedule[1].per_device == std::vector<int>{8});

  CHECK_FALSE(may_resize(parse(with_growth("from: 3 to: 3"))));
}

TEST_CASE("every device gets the same number of learners") {
  const JobOptions job = parse(with_growth("to: 2"), {"devices=cpu:0", "devices=cpu:1"});
  REQUIRE(job.schedule.size() == 2);
  CHECK(job.schedule[1].per_device == std::vector<int>{2, 2});
  CHECK(most_learners(job) == 4);
}

TEST_CASE("an impossible growth is refused at its position") {
  for (const auto& [growth, message] : std::vector<std::pair<std::string, std::string>>{
           {"", "to is missing: how many learners there are in the end, such as 16"},
           {"to: 0", "to must be in [1, 1024], not 0"},
           {"to: 2000", "to must be in [1, 1024], not 2000"},
           {"from: 0 to: 4", "from must be in [1, 4], the learners in the end, not 0"},
           {"from: 5 to: 4", "from must be in [1, 4], the learners in the end, not 5"},
           {"to: 4 epochs: 0", "epochs must be above 0 and below training.max_epochs, 10, not 0"},
           {"to: 4 epochs: 10", "epochs must be above 0 and below training.max_epochs, 10, not 10"},
           {"to: 4 epochs: nan", "epochs must be a finite number, not nan"},
           {"to: 900", "a round of 900 learners"}}) {
    CAPTURE(growth);
    CHECK_THAT(refusal(with_growth(growth)), ContainsSubstring("job.txtpb:7:") && ContainsSubstring(message));
  }
  // Learners of a switch would contradict the growth.
  CHECK_THAT(
      refusal(with_growth("to: 4") + "synchronization { s_sgd {} switch { at_epoch: 2 s_sgd {} learners: 2 } }\n"),
      ContainsSubstring("learners of a switch need a fixed number before it"));
}

TEST_CASE("learners that will share cores after growing are a warning") {
  const std::vector<std::string> warnings = parse(with_growth("to: 600")).warnings;
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings.front(), ContainsSubstring("600 learners share the"));
}

}  // namespace arbalest::jobs
