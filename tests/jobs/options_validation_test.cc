// data.validation in a job: defaults, consequences, and errors.
#include "tests/jobs/job_text.h"

namespace arbalest::jobs {

namespace {

std::string with_data(std::string_view data) { return changed("data { digits {} }", data); }

// Returns the valid job with this validation.
std::string with_validation(std::string_view validation) {
  return with_data("data { digits {} validation { " + std::string(validation) + " } }");
}

// Returns the first line of the error for a job.
std::string said_of(const std::string& text) {
  const std::string said = refusal(text);
  return said.substr(0, said.find('\n'));
}

}  // namespace

TEST_CASE("a job has no validation set unless it asks for one, and the validation seed is separate") {
  const JobOptions none = parse(std::string(kGoodJob));
  CHECK_FALSE(none.data.validation.has_value());
  CHECK(none.data.training_examples == 20'000);
  CHECK(none.data.validation_examples == 0);
  CHECK(none.resolved_text.find("validation") == std::string::npos);

  const JobOptions job = parse(with_validation("fraction: 0.1"), {"training.seed=7"});
  REQUIRE(job.data.validation.has_value());
  CHECK(job.data.validation->rule.fraction == 0.1);
  CHECK(job.data.validation->rule.seed == 1);
  CHECK_THAT(job.resolved_text, ContainsSubstring("validation {\n    fraction: 0.1\n    seed: 1\n  }"));
  const JobOptions again = parse(job.resolved_text);
  CHECK(again.resolved_text == job.resolved_text);
  CHECK(again.data.validation->rule.fraction == 0.1);
  CHECK(again.data.training_examples == job.data.training_examples);
  CHECK(parse(std::string(kGoodJob), {"data.validation={fraction: 0.5 seed: 18446744073709551615}"})
            .data.validation->rule.seed == 18446744073709551615U);
}

TEST_CASE("the sizes of known datasets follow from their classes") {
  const auto sizes = [](const std::string& data) {
    const DataOptions options = parse(with_data("data { " + data + " validation { fraction: 0.15 } }")).data;
    return std::pair(options.training_examples.value(), options.validation_examples.value());
  };
  CHECK(sizes("digits {}") == std::pair<std::int64_t, std::int64_t>{17'000, 3000});
  CHECK(sizes("cifar10 {}") == std::pair<std::int64_t, std::int64_t>{42'500, 7500});
  CHECK(sizes("cifar100 {}") == std::pair<std::int64_t, std::int64_t>{42'500, 7500});
  CHECK(sizes("fashion_mnist {}") == std::pair<std::int64_t, std::int64_t>{51'000, 9000});
  // 888 + 1011 + 894 + 920 + 876 + 813 + 888 + 940 + 878 + 892
  CHECK(sizes("mnist {}") == std::pair<std::int64_t, std::int64_t>{51'000, 9000});
  const JobOptions arrays = parse(with_data(
      "data { npy { directory: 'a' classes: 3 height: 28 width: 28 channels: 1 } validation { fraction: 0.1 } }"));
  CHECK_FALSE(arrays.data.training_examples.has_value());
  CHECK_FALSE(arrays.data.validation_examples.has_value());
}

TEST_CASE("mini-batches and rounds must fit into the remaining training set") {
  const std::string half = with_validation("fraction: 0.5");
  CHECK(parse(half, {"training.batch_size=5000"}).training.batch_size == 5000);
  CHECK_THAT(refusal(half, {"training.batch_size=10001", "learners.per_device.fixed=1"}, engine::ErrorKind::kUsage),
             ContainsSubstring("--set training.batch_size=10001: error: batch_size 10001 is larger than the training "
                               "set of digits (10000 examples without those that validate)"));
  CHECK_THAT(refusal(half, {"training.batch_size=5001"}, engine::ErrorKind::kUsage),
             ContainsSubstring("a round of 2 learners with period 1 needs 2 mini-batches, but an epoch has 1"));
  CHECK(parse(std::string(kGoodJob), {"training.batch_size=10000"}).training.batch_size == 10'000);
}

TEST_CASE("an impossible validation set is refused at its position") {
  CHECK(said_of(with_validation("")) ==
        "job.txtpb:3:18: error: fraction is missing: the part of each class that validates, such as 0.1");
  for (const char* fraction : {"0", "-0.1", "0.51", "1"}) {
    CHECK(said_of(with_validation("fraction: " + std::string(fraction))) ==
          "job.txtpb:3:31: error: fraction must be in (0, 0.5], not " + std::string(fraction));
  }
  CHECK(said_of(with_validation("fraction: 10")) ==
        "job.txtpb:3:31: error: fraction must be in (0, 0.5], not 10; did you mean 0.1?");
  CHECK(said_of(with_validation("fraction: nan")) ==
        "job.txtpb:3:31: error: fraction must be a finite number, not nan");
  CHECK(said_of(with_validation("fraction: 0.0001")) ==
        "job.txtpb:3:31: error: fraction 0.0001 leaves class 0, of 2,000 examples, without a validation example; raise "
        "it: 0.0003 is enough");
  CHECK(parse(with_validation("fraction: 0.0003")).data.validation_examples == 10);
  CHECK(said_of(with_data("data { mnist {} validation { fraction: 0.000088 } }")) ==
        "job.txtpb:3:30: error: fraction 8.8e-05 leaves class 5, of 5,421 examples, without a validation example; "
        "raise it: 0.0001 is enough");
  CHECK(said_of(with_validation("fraction: 0.1 seed: -1")).starts_with("job.txtpb:3:"));
  CHECK(said_of(with_validation("fracton: 0.1")).starts_with("job.txtpb:3:31: error: "));
}

TEST_CASE("a target that only a perfect model reaches on the validation set is a warning") {
  const auto warnings = [](const std::string& fraction, const std::string& target) {
    return parse(with_validation("fraction: " + fraction), {"training.target_accuracy=" + target}).warnings;
  };
  CHECK(warnings("0.1", "0.99").empty());
  REQUIRE(warnings("0.002", "0.99").size() == 1);
  CHECK_THAT(warnings("0.002", "0.99")[0],
             ContainsSubstring("data.validation: with 40 examples to validate with") && ContainsSubstring("0.99"));
  CHECK(warnings("0.002", "0.9").empty());
  CHECK(warnings("0.002", "1").empty());
}

}  // namespace arbalest::jobs
