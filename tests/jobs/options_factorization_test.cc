// Jobs that train matrix factorization by hogwild: defaults, checks, and the resolved text.
#include <variant>

#include "engine/base/update_rule.h"
#include "tests/jobs/job_text.h"

namespace arbalest::jobs {

namespace {

const std::string kFactorization = R"(name: "ratings"
model { zoo { matrix_factorization { width: 4 mean: 3.5 } } }
data { ratings { directory: "ratings" sizes: [20, 12] } }
learning_rate { base: 0.02 }
synchronization { hogwild {} }
learners { per_device { fixed: 2 } }
)";

std::string with(const std::string& from, const std::string& to) {
  std::string text = kFactorization;
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("hogwild on ratings: defaults, and the resolved text stands for the same job") {
  const JobOptions job = parse(kFactorization);
  REQUIRE(job.sparse);
  REQUIRE(job.graph != nullptr);
  CHECK(std::get<HogwildOptions>(job.sparse->scheme).learning_rate.at(3.0, 1) == 0.02F);
  CHECK(job.data.kind == DataOptions::Kind::kRatings);
  CHECK(job.data.train == "train_ids.npy");
  CHECK(job.training.max_epochs == 10);
  CHECK(engine::weight_decay_of(job.optimizer.rule) == 0.0F);
  CHECK(job.learners_per_device == std::vector<int>{2});
  CHECK(parse(job.resolved_text).resolved_text == job.resolved_text);
  const JobOptions other = parse(kFactorization, {"optimizer.sgd.weight_decay=0.25", "training.seed=9",
                                                  "training.max_epochs=3", "learning_rate.schedule=cosine"});
  CHECK(engine::weight_decay_of(other.optimizer.rule) == 0.25F);
  CHECK(other.training.seed == 9);
  CHECK(std::get<HogwildOptions>(other.sparse->scheme).learning_rate.at(1.5, 1) == Approx(0.01));
  CHECK(parse(other.resolved_text).resolved_text == other.resolved_text);
}

TEST_CASE("hogwild on ratings: what cannot work is refused, with line and column") {
  struct Case {
    std::string text;
    const char* message;
  };
  for (const Case& c : std::vector<Case>{
           {with("data { ratings { directory: \"ratings\" sizes: [20, 12] } }", "data { digits {} }"),
            "job.txtpb:3:1: error: matrix factorization reads ratings"},
           {with("data { ratings { directory: \"ratings\" sizes: [20, 12] } }\n", ""),
            "matrix factorization reads ratings"},
           {with("fixed: 2", "auto {}"),
            "job.txtpb:6:25: error: auto does not go with hogwild on ratings, whose steps are single ratings; remove "
            "it"},
           {with("fixed: 2", "fixed: 0"), "fixed must be in [1, 1024], not 0"},
           {with("base: 0.02", "base: 0.02 with_learners: LINEAR"),
            "job.txtpb:4:28: error: with_learners must be KEEP with hogwild"},
           {with("base: 0.02", "base: 0.02 plateau {}"), "choose another one"},
           {with("base: 0.02", ""), "learning_rate.base is missing"},
           {with("width: 4", "width: 0"), "job.txtpb:2:38: error: width must be in [1, 1048576], not 0"},
           {with("[20, 12]", "[20, 12, 3]"), "columns"},
           {with("sizes: [20, 12]", "sizes: [20, 12] validation_ids: \"v.npy\" validation_targets: \"t.npy\""),
            "hogwild is judged by its test set alone; remove validation_ids and validation_targets"},
           {kFactorization + "optimizer { sgd { weight_decay: 2 } }\n", "weight_decay must be in [0, 1], not 2"},
           {kFactorization + "training { max_epochs: 0 }\n", "max_epochs must be in [1, 1000000], not 0"},
       }) {
    INFO(c.text);
    CHECK_THAT(refusal(c.text), ContainsSubstring(c.message));
  }
}

TEST_CASE("hogwild on ratings: fields of other kinds of jobs are refused together") {
  const std::string text = refusal(kFactorization + R"(
optimizer { sgd { momentum: 0.9 } clip_gradient_norm: 1 }
checkpoint { keep_last: 1 }
training { batch_size: 8 patience_epochs: 2 freeze: "user*" }
initialize { from: "x" }
processes { peer_timeout_seconds: 5 }
)",
                                   {"synchronization.compare_rounds=1", "data.validation={fraction: 0.1}"});
  for (const char* field : {"momentum", "clip_gradient_norm", "checkpoint", "batch_size", "patience_epochs", "freeze",
                            "initialize", "processes", "compare_rounds", "validation"}) {
    INFO(field);
    CHECK_THAT(text,
               ContainsSubstring(std::string("error: ") + field +
                                 " does not go with hogwild on ratings, whose steps are single ratings; remove it"));
  }
  const std::string adam = refusal(kFactorization + "optimizer { adamw {} }\n");
  CHECK_THAT(adam, ContainsSubstring("error: adamw does not go with"));
  CHECK_THAT(adam, !ContainsSubstring("must be in"));
}

}  // namespace arbalest::jobs
