// Jobs with model { sparse_logistic {} }: defaults, checks, and the resolved text.
#include <variant>

#include <fmt/format.h>

#include "tests/jobs/job_text.h"

namespace arbalest::jobs {

namespace {

const std::string kSparse = R"(name: "sparse"
model { sparse_logistic {} }
data { libsvm { directory: "rows" features: 30 } }
synchronization { delayed_proximal { l1: 0.01 } }
learners { per_device { fixed: 2 } }
)";

std::string with(const std::string& from, const std::string& to) {
  std::string text = kSparse;
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string with_proximal(const std::string& fields) {
  return with("delayed_proximal { l1: 0.01 }", "delayed_proximal { " + fields + " }");
}

// The error of a job with a setting that is wrong.
std::string refused_setting(const std::string& text, const std::vector<std::string>& settings) {
  return refusal(text, settings, engine::ErrorKind::kUsage);
}

const DelayedProximalOptions& proximal_of(const JobOptions& job) {
  return std::get<DelayedProximalOptions>(job.sparse->scheme);
}

}  // namespace

TEST_CASE("sparse job: defaults") {
  const JobOptions job = parse(kSparse);
  REQUIRE(job.sparse);
  CHECK(job.graph == nullptr);
  CHECK(job.sparse->directory == "rows");
  CHECK(job.sparse->train == "train.libsvm");
  CHECK(job.sparse->test == "test.libsvm");
  CHECK(job.sparse->features == 30);
  CHECK(job.sparse->bias);
  CHECK(job.training.max_epochs == 100);
  CHECK(job.learners_per_device == std::vector<int>{2});
  const DelayedProximalOptions& scheme = proximal_of(job);
  CHECK(scheme.tolerance == 1e-5);
  CHECK(scheme.solver.blocks == 16);
  CHECK(scheme.solver.max_delay == 0);
  CHECK(scheme.solver.l1 == 0.01);
  CHECK(scheme.solver.step == 1.0);
  CHECK(scheme.solver.first_bound == 1.0);
  CHECK(scheme.solver.largest_bound == 5.0);
  CHECK(scheme.solver.bias);
}

TEST_CASE("sparse job: every field is read, and the resolved text stands for the same job") {
  const JobOptions job =
      parse(with_proximal("blocks: 31 max_delay: 30 l1: 0 step: 0.5 tolerance: 0 first_bound: 2 largest_bound: 3"),
            {"training.max_epochs=7", "training.seed=9", "data.libsvm.train=a", "data.libsvm.test=b"});
  const DelayedProximalOptions& scheme = proximal_of(job);
  CHECK(scheme.solver.blocks == 31);
  CHECK(scheme.solver.max_delay == 30);
  CHECK(scheme.solver.step == 0.5);
  CHECK(scheme.solver.seed == 9);
  CHECK(scheme.solver.first_bound == 2.0);
  CHECK(scheme.solver.largest_bound == 3.0);
  CHECK(scheme.tolerance == 0.0);
  CHECK(job.sparse->train == "a");
  CHECK(job.sparse->test == "b");
  CHECK(job.training.max_epochs == 7);
  CHECK(parse(job.resolved_text).resolved_text == job.resolved_text);
  const JobOptions few = parse(with("features: 30", "features: 3"), {"model.sparse_logistic.bias=false"});
  CHECK(proximal_of(few).solver.blocks == 3);
  CHECK_FALSE(few.sparse->bias);
  CHECK_FALSE(proximal_of(few).solver.bias);
}

TEST_CASE("sparse job: hogwild takes a learning rate by the epoch") {
  const std::string text =
      with("delayed_proximal { l1: 0.01 }", "hogwild {}") + "learning_rate { base: 0.1 cosine {} }\n";
  const JobOptions job = parse(text);
  const auto& scheme = std::get<HogwildOptions>(job.sparse->scheme);
  CHECK(scheme.learning_rate.at(0.0, 1) == 0.1F);
  CHECK(scheme.learning_rate.at(5.0, 1) == Approx(0.05));
  CHECK(job.training.max_epochs == 10);
  CHECK(parse(job.resolved_text).resolved_text == job.resolved_text);
  CHECK_THAT(refused_setting(text, {"learning_rate.with_learners=LINEAR"}),
             ContainsSubstring("with_learners must be KEEP"));
  CHECK_THAT(refused_setting(text, {"learning_rate.schedule=plateau"}), ContainsSubstring("choose another one"));
  CHECK_THAT(refused_setting(text, {"learning_rate.base=-1"}), ContainsSubstring("base must be"));
  CHECK_THAT(refused_setting(text, {"learning_rate.limit=1"}), ContainsSubstring("limit does not go with"));
  CHECK_THAT(refusal(with("delayed_proximal { l1: 0.01 }", "hogwild {}")), ContainsSubstring("base"));
}

TEST_CASE("sparse job: values out of range are named with line and column") {
  struct Case {
    std::string text;
    const char* message;
  };
  for (const Case& c : std::vector<Case>{
           {with_proximal("l1: 0.01 blocks: 32"),
            "job.txtpb:4:47: error: blocks must be at most the 31 coordinates of the model (data.libsvm.features and "
            "the bias), not 32"},
           {with_proximal("l1: 0.01 blocks: 0"), "job.txtpb:4:47: error: blocks must be at least 1, not 0"},
           {with_proximal("l1: 0.01 max_delay: -1"),
            "job.txtpb:4:47: error: max_delay must be at least 0, not -1; 0 is block after block"},
           {with_proximal("l1: 0.01 blocks: 4 max_delay: 4"),
            "job.txtpb:4:57: error: max_delay must be below the number of blocks: 4 is not below 4"},
           {with_proximal("blocks: 4"), "l1 is missing: the weight of the penalty"},
           {with_proximal("l1: -1"), "job.txtpb:4:38: error: l1 must be in [0, 1000000], not -1"},
           {with_proximal("l1: nan"), "job.txtpb:4:38: error: "},
           {with_proximal("l1: 1 step: 0"), "step must be in (0, 1], not 0"},
           {with_proximal("l1: 1 tolerance: 1"), "tolerance must be in [0, 1), not 1"},
           {with_proximal("l1: 1 first_bound: 6"), "first_bound must be in (0, 5], not 6"},
           {with_proximal("l1: 1 largest_bound: 0"), "largest_bound must be in (0, 1000000], not 0"},
           {with("features: 30", "features: 0"), "job.txtpb:3:35: error: features must be in [1, 100000000], not 0"},
           {with(" features: 30", ""), "features is missing: the largest feature number of the model"},
           {with("directory: \"rows\"", ""), "directory is missing"},
           {with("features", "train: \"\" features"), "train is empty"},
           {with("fixed: 2", "fixed: 0"), "fixed must be in [1, 1024], not 0"},
           {kSparse + "training { max_epochs: 0 }\n", "max_epochs must be in [1, 1000000], not 0"},
           {kSparse + "devices: \"cpu:99999\"\n", "job.txtpb:6:"},
       }) {
    INFO(c.text);
    CHECK_THAT(refusal(c.text), ContainsSubstring(c.message));
  }
}

TEST_CASE("sparse job: parts of other kinds of jobs are refused together") {
  const std::string text = refusal(kSparse + R"(
optimizer { adamw {} }
learning_rate { base: 0.1 }
checkpoint { keep_last: 1 }
training { batch_size: 8 target_accuracy: 0.9 max_epochs: 3 }
)" + std::string("initialize { from: \"x\" }\nprocesses { all_reduce: LIBRARY }\n"),
                                   {"synchronization.switch=[{at_epoch: 1 sma {}}]", "synchronization.compare_rounds=1",
                                    "data.class_names=[\"a\", \"b\"]"});
  for (const char* field : {"optimizer", "learning_rate", "checkpoint", "batch_size", "target_accuracy", "initialize",
                            "all_reduce", "switch", "compare_rounds", "class_names"}) {
    INFO(field);
    CHECK_THAT(text, ContainsSubstring(std::string("error: ") + field +
                                       " does not go with model { sparse_logistic {} }; remove it"));
  }
  CHECK_THAT(text, !ContainsSubstring("max_epochs does not"));
  CHECK_THAT(refusal(with("fixed: 2", "auto {}")), ContainsSubstring("job.txtpb:5:25: error: auto does not go with"));
  CHECK_THAT(refused_setting(kSparse, {"model.zoo.lenet={}"}), ContainsSubstring("zoo does not go with"));
  CHECK_THAT(refused_setting(kSparse, {"model.accuracy={ top_k: 3 }"}), ContainsSubstring("accuracy does not go with"));
}

TEST_CASE("sparse job: the silence of a process is a choice of delayed_proximal, which alone may have several") {
  CHECK(parse(kSparse).processes.peer_timeout_seconds == 30.0);
  const std::string timeout = "processes { peer_timeout_seconds: 5 }\n";
  const JobOptions job = parse(kSparse + timeout);
  CHECK(job.processes.peer_timeout_seconds == 5.0);
  CHECK(parse(job.resolved_text).processes.peer_timeout_seconds == 5.0);
  CHECK_THAT(refused_setting(kSparse, {"processes.peer_timeout_seconds=1"}),
             ContainsSubstring("peer_timeout_seconds must be in [2, 86400], not 1"));
  CHECK_THAT(refusal(with("delayed_proximal { l1: 0.01 }", "hogwild {}") + "learning_rate { base: 0.1 }\n" + timeout),
             ContainsSubstring("processes does not go with"));
}

TEST_CASE("sparse job: its parts need each other") {
  CHECK_THAT(refusal(changed("data { digits {} }", "data { libsvm { directory: \"rows\" features: 30 } }")),
             ContainsSubstring("libsvm and delayed_proximal are for model { sparse_logistic {} }"));
  CHECK_FALSE(parse(std::string(kGoodJob) + "devices: \"cpu\"\nsynchronization { hogwild {} }\n").sparse);
  const std::string other =
      refusal(std::string(kGoodJob), {"synchronization=delayed_proximal"}, engine::ErrorKind::kUsage);
  CHECK(other ==
        "--set synchronization=delayed_proximal: error: delayed_proximal is for model { sparse_logistic {} }, and the "
        "job "
        "has another model; choose another scheme");
  CHECK_THAT(refusal(with("delayed_proximal { l1: 0.01 }", "")), ContainsSubstring("choose one"));
  CHECK_THAT(
      refusal(with("delayed_proximal { l1: 0.01 }", "sma {}")),
      ContainsSubstring("job.txtpb:4:19: error: sparse_logistic is trained by synchronization { delayed_proximal"));
}

TEST_CASE("sparse job: a scheme for models of layers gets one message, which names the schemes to choose from") {
  const std::string text = kSparse + "processes { peer_timeout_seconds: 5 }\n";
  for (const std::string setting : {"synchronization=async_sgd{}", "synchronization=async_sgd",
                                    "synchronization.async_sgd={}", "synchronization.kind=async_sgd{staleness: 2}"}) {
    INFO(setting);
    CHECK(refused_setting(text, {setting}) ==
          fmt::format("--set {}: error: sparse_logistic is trained by synchronization {{ delayed_proximal {{ l1: ... "
                      "}} }} or {{ hogwild {{}} }}, not by async_sgd; choose one",
                      setting));
  }
  const std::string rated = with("delayed_proximal { l1: 0.01 }", "hogwild {}") + "learning_rate { base: 0.1 }\n";
  CHECK_THAT(refused_setting(rated, {"synchronization=s_sgd"}),
             ContainsSubstring("not by s_sgd; choose one") && !ContainsSubstring("errors"));
}

}  // namespace arbalest::jobs
