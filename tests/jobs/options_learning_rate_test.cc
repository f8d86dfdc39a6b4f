// Tests that the learning rate of a job follows its mini-batch size.
#include <cmath>

#include "tests/jobs/job_text.h"

namespace arbalest::jobs {

namespace {

// The base of a job with mini-batches of 32, whose learning_rate has `fields`.
double base_of(const std::string& fields, const std::vector<std::string>& settings = {}) {
  return parse(changed("base: 0.01", fields), settings).learning_rate.base;
}

}  // namespace

TEST_CASE("without for_batch_size the learning rate is the same for every mini-batch size") {
  CHECK(base_of("base: 0.02", {"training.batch_size=8"}) == 0.02);
}

TEST_CASE("the learning rate follows the mini-batch size by the rule of the job") {
  for (const auto& [batch_size, ratio] : std::vector<std::pair<int, double>>{{8, 0.25}, {32, 1.0}, {128, 4.0}}) {
    const std::string setting = "training.batch_size=" + std::to_string(batch_size);
    CHECK(base_of("base: 0.02 for_batch_size: 32 with_batch_size: KEEP", {setting}) == 0.02);
    CHECK(base_of("base: 0.02 for_batch_size: 32 with_batch_size: SQRT", {setting}) == 0.02 * std::sqrt(ratio));
    CHECK(base_of("base: 0.02 for_batch_size: 32 with_batch_size: LINEAR", {setting}) == 0.02 * ratio);
    CHECK(base_of("base: 0.02 for_batch_size: 32", {setting}) == 0.02 * ratio);  // the default
  }
}

TEST_CASE("the text of a job keeps the learning rate as it was given, and reads the same again") {
  const JobOptions job = parse(changed("base: 0.01", "base: 0.02 for_batch_size: 32"), {"training.batch_size=16"});
  CHECK_THAT(job.resolved_text, ContainsSubstring("base: 0.02") && ContainsSubstring("for_batch_size: 32") &&
                                    ContainsSubstring("with_batch_size: LINEAR"));
  CHECK(parse(job.resolved_text).learning_rate.base == 0.01);
}

TEST_CASE("the limit bounds the learning rate that follows learners and mini-batch size") {
  const auto peak = [](int learners, const std::string& batch_size) {
    const JobOptions job = parse(changed("base: 0.01", "base: 0.02 for_batch_size: 32 limit: 0.08"),
                                 {"training.batch_size=" + batch_size});
    return job.learning_rate.at(0.0, learners);
  };
  CHECK(peak(1, "32") == 0.02F);
  CHECK(peak(4, "32") == 0.04F);
  CHECK(peak(1, "128") == 0.08F);
  CHECK(peak(4, "128") == 0.08F);
  CHECK(peak(64, "32") == 0.08F);
  // A base above the limit stays, and is not raised.
  const JobOptions above = parse(changed("base: 0.01", "base: 0.1 limit: 0.04"));
  CHECK(above.learning_rate.at(0.0, 1) == 0.1F);
  CHECK(above.learning_rate.at(0.0, 4) == 0.1F);
}

TEST_CASE("a learning rate that cannot follow the mini-batch size is refused") {
  const auto refused = [](const std::string& fields, const std::vector<std::string>& settings = {}) {
    return refusal(changed("base: 0.01", fields), settings);
  };
  CHECK_THAT(refused("base: 0.02 for_batch_size: 0"),
             ContainsSubstring("for_batch_size must be in [1, 1000000], not 0"));
  CHECK_THAT(refused("base: 0.02 with_batch_size: SQRT"), ContainsSubstring("with_batch_size needs for_batch_size"));
  CHECK_THAT(refused("base: 0.02 limit: 0"), ContainsSubstring("limit must be "));
  CHECK_THAT(refused("base: 0.02 limit: nan"), ContainsSubstring("limit must be a finite number, not nan"));
  CHECK_THAT(refused("base: 900 for_batch_size: 1"),
             ContainsSubstring("base 900, scaled from mini-batches of 1 to 32, is 28800, which is above 1000"));
}

}  // namespace arbalest::jobs
