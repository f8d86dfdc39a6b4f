// Numbers with a leading zero, which protobuf 3.21 reads as octal.
#include "options/loading/parsed_job.h"
#include "tests/jobs/job_text.h"

namespace arbalest::jobs {

namespace {

using Texts = std::vector<std::string>;

Texts warnings_of(const std::string& text) { return parse(text).warnings; }

std::string usage(const std::string& setting) {
  return refusal(std::string(kGoodJob), {setting}, engine::ErrorKind::kUsage);
}

}  // namespace

TEST_CASE("numbers: a job file's number with a leading zero is octal, and a warning says both readings") {
  const JobOptions job = parse(changed("batch_size: 32", "batch_size: 064"));
  CHECK(job.training.batch_size == 52);
  CHECK(job.warnings ==
        Texts{"job.txtpb:4:24: batch_size: 064 is octal 52, because of its leading zero; write 64 or 52"});
  CHECK(parse(job.resolved_text).warnings.empty());
}

TEST_CASE("numbers: every octal number is named, wherever it stands") {
  const std::string text = changed("lenet {}", "mlp { hidden: [0100, 64] hidden: 010 }");
  CHECK(warnings_of(text) ==
        Texts{"job.txtpb:2:30: hidden: 0100 is octal 64, because of its leading zero; write 100 or 64",
              "job.txtpb:2:48: hidden: 010 is octal 8, because of its leading zero; write 10 or 8"});
  // Both readings are the same.
  CHECK(warnings_of(changed("fixed: 2", "fixed: 02")) ==
        Texts{"job.txtpb:6:32: fixed: 02 is octal 2, because of its leading zero; write 2"});
  CHECK_THAT(warnings_of(changed("max_epochs: 10", "max_epochs: 10 seed: 00")).at(0),
             ContainsSubstring("seed: 00 is octal 0, because of its leading zero; write 0"));
}

TEST_CASE("numbers: other numbers, and digits in texts and comments, are as they seem") {
  CHECK(warnings_of(changed("name: \"job\"", "name: \"064\" '010' # seed: 010\n")).empty());
  CHECK(warnings_of(changed("base: 0.01", "base: 0.05")).empty());
  CHECK(parse(changed("batch_size: 32", "batch_size: 0x20")).training.batch_size == 32);
  CHECK(warnings_of(changed("batch_size: 32", "batch_size: 0x20 seed: 0")).empty());
}

TEST_CASE("numbers: a leading zero is refused where octal is impossible") {
  const std::string advice = "a number with a leading zero is octal, which has no digits 8 and 9; remove the zero";
  CHECK_THAT(refusal(changed("batch_size: 32", "batch_size: 08")),
             ContainsSubstring("job.txtpb:4:25: error: " + advice));
  CHECK_THAT(refusal(changed("base: 0.01", "base: 010")),
             ContainsSubstring("expected a decimal number without a leading zero, not 010"));
  CHECK_THAT(refusal(changed("base: 0.01", "base: 00.5")),
             ContainsSubstring("a fraction has no leading zeros, as in 0.5"));
}

TEST_CASE("numbers: --set refuses a leading zero") {
  CHECK(
      usage("training.batch_size=064") ==
      "--set training.batch_size=064: error: batch_size: 064 is octal 52, because of its leading zero; write 64 or 52");
  CHECK_THAT(usage("training.seed=007"),
             ContainsSubstring("seed: 007 is octal 7, because of its leading zero; write 7"));
  CHECK_THAT(usage("model.zoo.mlp={hidden: [64, 0100]}"), ContainsSubstring("write 100 or 64"));
  CHECK_THAT(usage("model.zoo=mlp{hidden: 010}"), ContainsSubstring("write 10 or 8"));
  CHECK_THAT(usage("training.batch_size=-064"), ContainsSubstring("-064 is octal -52"));
  CHECK_THAT(usage("training.batch_size=089"), ContainsSubstring("remove the zero"));
  CHECK_THAT(usage("learning_rate.base=010"), ContainsSubstring("without a leading zero, not 010"));
  CHECK(parse(std::string(kGoodJob), {"name=064", "training.seed=0", "training.batch_size=0x10"}).name == "064");
}

}  // namespace arbalest::jobs
