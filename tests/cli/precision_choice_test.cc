// precision: AUTO, as a user meets it.
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/cli/small_run.h"
#include "tests/support/catch.h"

namespace arbalest::tests {

namespace {

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

const std::vector<std::string> kChooses = {"--set", "training.precision=AUTO"};

}  // namespace

TEST_CASE("precision AUTO: a run says what it took, and keeps it when it goes on with more instructions") {
  Program limited;
  limited.set_environment("ONEDNN_MAX_CPU_ISA=AVX2");
  const Completed trained = limited.run(with(kSmall, kChooses));
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  CHECK_THAT(trained.err, ContainsSubstring("precision  AUTO took FP32: 'cpu' has no BF16\n"));
  CHECK(summary_of(limited / "run")["precision"] == "FP32");
  CHECK_THAT(read_text(limited / "run/job.txtpb"), ContainsSubstring("precision: FP32"));
  CHECK_THAT(read_text(limited / "run/metrics.jsonl"), ContainsSubstring("AUTO took FP32"));

  limited.set_environment("ONEDNN_MAX_CPU_ISA=DEFAULT");
  const Completed resumed =
      limited.run(with(with(kSmall, kChooses), {"--set", "training.max_epochs=2", "--resume", "auto"}));
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  CHECK(resumed.err.find("AUTO took") == std::string::npos);
  CHECK(summary_of(limited / "run")["precision"] == "FP32");
  CHECK(summary_of(limited / "run")["epochs"] == 2);
  const Completed evaluated = limited.run({"evaluate", "run"});
  CHECK(evaluated.exit_code == 0);
  CHECK(evaluated.err.find("AUTO") == std::string::npos);
}

TEST_CASE("precision AUTO: a run on this machine names one of two precisions, and says why") {
  const Program program;
  const Completed trained = program.run(with(kSmall, kChooses));
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  const std::string precision = summary_of(program / "run")["precision"];
  CHECK((precision == "FP32" || precision == "BF16"));
  CHECK_THAT(trained.err, ContainsSubstring("AUTO took " + precision + ": "));
  CHECK_THAT(trained.err, ContainsSubstring("mini-batches of 32 each, " + precision));
  CHECK(program.run({"evaluate", "run"}).exit_code == 0);
}

TEST_CASE("precision AUTO: tune settles it before it measures") {
  Program program;
  program.set_environment("ONEDNN_MAX_CPU_ISA=AVX2");
  const Completed tuned = program.run(with({"tune", Program::config("logistic-digits"), "--set",
                                            "learners.per_device.auto={max: 1}", "--no-cache", "--json"},
                                           kChooses));
  INFO(tuned.err);
  REQUIRE(tuned.exit_code == 0);
  CHECK_THAT(tuned.err, ContainsSubstring("precision AUTO took FP32: 'cpu' has no BF16"));
  CHECK(nlohmann::json::parse(tuned.out)["precision"] == "FP32");
}

}  // namespace arbalest::tests
