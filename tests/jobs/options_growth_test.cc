// Jobs whose number of learners doubles while they run.
#include <utility>

#include "options/readers/learners_reader.h"
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
           {"to: 0", "to must be in [2, 1024], not 0"},
           {"from: 2 to: 1", "to must be in [2, 1024], not 1"},
           {"to: 2000", "to must be in [2, 1024], not 2000"},
           {"from: 0 to: 4", "from must be at least 1, not 0"},
           {"from: 5 to: 4", "from must be below to, 4, not 5"},
           {"to: 1",
            "growth from 1 to 1 learner has no effect; raise to, or write learners { per_device { fixed: 1 } }"},
           {"from: 3 to: 3",
            "growth from 3 to 3 learners has no effect; raise to, or write learners { per_device { fixed: 3 } }"},
           {"to: 4 epochs: 0", "epochs must be above 0 and below training.max_epochs, 10, not 0"},
           {"to: 4 epochs: 10", "epochs must be above 0 and below training.max_epochs, 10, not 10"},
           {"to: 4 epochs: nan", "epochs must be a finite number, not nan"},
           {"to: 900", "a round of 900 learners"}}) {
    CAPTURE(growth);
    CHECK_THAT(refusal(with_growth(growth)), ContainsSubstring("job.txtpb:7:") && ContainsSubstring(message));
  }
  // Both mistakes are told at once, at their fields.
  CHECK_THAT(refusal(with_growth("from: 0 to: 2000")), ContainsSubstring("\n2 errors"));
  CHECK_THAT(refusal(with_growth("from: 3 to: 3")), ContainsSubstring("job.txtpb:7:42: error: growth from 3"));
  // Learners of a switch would contradict the growth.
  CHECK_THAT(
      refusal(with_growth("to: 4") + "synchronization { s_sgd {} switch { at_epoch: 2 s_sgd {} learners: 2 } }\n"),
      ContainsSubstring("learners of a switch need a fixed number before it"));
}

TEST_CASE("switches without effect are told while learners double") {
  const std::string growth = with_growth("from: 2 to: 4 epochs: 5");
  const auto warnings = [&](const std::string& synchronization) {
    std::vector<std::string> all = parse(growth + "synchronization { " + synchronization + " }\n").warnings;
    std::erase_if(all, [](const std::string& text) { return text.find("no round begins") == std::string::npos; });
    return all;
  };
  // 10 epochs of 625 mini-batches. Two learners train rounds of 10: the first at or after mini-batch 3,125 begins at
  // 3,130. From there on rounds of 20 begin, the last at 6,230.
  CHECK(warnings("sma { period: 5 } switch { at_epoch: 9.968 swap {} }").empty());
  const std::vector<std::string> late = warnings("sma { period: 5 } switch { at_epoch: 9.969 swap {} }");
  REQUIRE(late.size() == 1);
  CHECK_THAT(late.front(), ContainsSubstring("as a round of 4 learners with period 5 has 20 of the 625"));
  // Rounds of two learners begin at 1,250 and 1,260, which is epoch 2.016.
  CHECK(warnings("sma { period: 5 } switch { at_epoch: 2 sma { period: 5 } } switch { at_epoch: 2.001 swap {} }")
            .empty());
  const std::vector<std::string> both =
      warnings("sma { period: 5 } switch { at_epoch: 2.001 swap {} } switch { at_epoch: 2.002 sma {} }");
  REQUIRE(both.size() == 1);
  CHECK_THAT(both.front(), ContainsSubstring("switch[0]: no round begins between epoch 2.001 and epoch 2.002"));
  // A doubling that waits for a round goes on from the scheme of a switch before it: rounds of 2 mini-batches from
  // 3,120 on. So learners double at 3,126, and rounds of 4 begin at ..., 6,246.
  const std::string before = "sma { period: 5 } switch { at_epoch: 4.99 sma {} } ";
  CHECK(warnings(before + "switch { at_epoch: 9.9936 swap {} }").empty());
  CHECK(warnings(before + "switch { at_epoch: 9.9938 swap {} }").size() == 1);
}

TEST_CASE("learners that will share cores after growing are a warning") {
  const std::vector<std::string> warnings = parse(with_growth("to: 600")).warnings;
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings.front(), ContainsSubstring("600 learners share the"));
}

}  // namespace arbalest::jobs
