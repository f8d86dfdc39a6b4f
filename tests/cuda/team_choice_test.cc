// Which learners of a GPU form teams if the job does not say so.
#include <string>
#include <vector>

#include "options/loading/load_job.h"
#include "report/inspection/inspection_report.h"
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "train/inspection.h"
#include "train/train.h"

namespace arbalest::tests {
namespace {

jobs::JobOptions job_of(int filters, const std::string& learners, const std::string& rest = "") {
  const std::string text = R"(name: "small" model {
    layers { name: "conv" input: "image" conv { filters: )" +
                           std::to_string(filters) + R"( kernel: 5 stride: 3 } }
    layers { name: "logits" input: "conv" dense { units: 10 } }
    layers { name: "loss" input: ["logits", "label"] softmax_cross_entropy {} } }
    data { digits {} } learning_rate { base: 0.02 } optimizer { sgd { momentum: 0.9 } } devices: "cuda:0"
    training { batch_size: 20 max_epochs: 1 kernels: FIXED } learners { per_device { )" +
                           learners + " } } " + rest;
  return jobs::parse_job(jobs::SourceText("test", text));
}

constexpr int kFew = 4;    // filters, for which the rule takes kernels of ours
constexpr int kMany = 80;  // for which it takes a library's

}  // namespace

TEST_CASE("learners form one team if the job sets no size and libraries compute no layer", "[training]") {
  cuda_stand_in::reset();
  const jobs::Inspection own = jobs::inspect(job_of(kFew, "fixed: 4"));
  CHECK(own.team == 4);
  CHECK(own.layers_in_turn.empty());

  const jobs::Inspection libraries = jobs::inspect(job_of(kMany, "fixed: 4"));
  CHECK(libraries.team == 1);
  CHECK(libraries.layers_in_turn == std::vector<std::string>{"conv"});
  CHECK_THAT(jobs::to_text(libraries), ContainsSubstring("no teams: a library computes") && ContainsSubstring("conv"));

  SECTION("a size that the job sets holds") {
    CHECK(jobs::inspect(job_of(kMany, "fixed: 4 team: 2")).team == 2);
    CHECK(jobs::inspect(job_of(kFew, "fixed: 4 team: 1")).team == 1);
  }
  SECTION("a schedule may have the whole device as a team") {
    const jobs::Inspection inspection =
        jobs::inspect(job_of(kFew, "schedule { step { at_batch: 0 learners: 2 } step { at_batch: 40 learners: 6 } }"));
    CHECK(inspection.team == 6);
    CHECK(inspection.teams_vary);
  }
  SECTION("a scheme without teams has none") {
    const jobs::Inspection inspection = jobs::inspect(job_of(kFew, "fixed: 4", "synchronization { async_sgd {} }"));
    CHECK(inspection.team == 1);
    CHECK(inspection.layers_in_turn.empty());
  }
}

TEST_CASE("a team that the engine chooses changes no byte of the model", "[training]") {
  const auto train = [](const std::string& learners) {
    cuda_stand_in::reset();
    const TemporaryDirectory directory;
    jobs::RunContext context;
    context.output_directory = directory.path().string();
    return jobs::train(job_of(kFew, learners), context);
  };
  const jobs::RunSummary chosen = train("fixed: 4"), alone = train("fixed: 4 team: 1");
  CHECK(chosen.model_sha256 == alone.model_sha256);
  CHECK(chosen.largest_team == 4);
  CHECK(alone.largest_team == 1);
}

}  // namespace arbalest::tests
