// Jobs whose steps grow with the number of learners in two ways at once, with momentum.
#include <algorithm>

#include <fmt/format.h>

#include "tests/jobs/job_text.h"

namespace arbalest::jobs {

using Catch::Matchers::StartsWith;

namespace {

// Returns a job of this model with a synchronization in line 7 and this many learners.
std::string with(const std::string& synchronization, int learners, const std::string& scaling,
                 const std::string& model = "zoo { lenet {} }", const std::string& momentum = "0.9") {
  return fmt::format(
      "name: \"job\"\nmodel {{ {} }}\ndata {{ digits {{}} }}\ntraining {{ batch_size: 32 max_epochs: 10 }}\n"
      "learning_rate {{ base: 0.01 with_learners: {} }}\nlearners {{ per_device {{ fixed: {} }} }}\n"
      "synchronization {{ {} }}\noptimizer {{ sgd {{ momentum: {} }} }}\ndevices: \"cpu\"\n",
      model, scaling, learners, synchronization, momentum);
}

bool warns_of_scheme(const JobOptions& job) {
  return std::ranges::any_of(job.warnings, [](const std::string& text) { return text.starts_with("synchronization"); });
}

// Reads the job of a new run.
void begin(const std::string& text, const std::vector<std::string>& settings = {}) {
  require_stable_steps(parse(text, settings));
}

void check_refused(const std::string& synchronization, int learners, const std::string& scaling,
                   const std::string& reason, const std::string& remedy) {
  CAPTURE(synchronization, learners, scaling);
  CHECK_THAT(refusal(with(synchronization, learners, scaling)),
             StartsWith("job.txtpb:7:") &&
                 ContainsSubstring("with the optimizer's momentum 0.9 these steps are likely to diverge: ") &&
                 ContainsSubstring(reason) && ContainsSubstring(remedy));
}

}  // namespace

TEST_CASE("a job whose steps grow twice with its learners is refused, with the setting that trains") {
  const std::string keep = "set learning_rate.with_learners: KEEP";
  const std::string linear = "with_learners: LINEAR multiplies the learning rate of each of 2 learners by 2";
  check_refused("hogwild {}", 2, "LINEAR", linear + ", and under hogwild each takes whole steps",
                keep + " and optimizer.sgd.momentum: 0");
  check_refused("hogwild {}", 2, "SQRT", "SQRT multiplies the learning rate of each of 2 learners by 1.41", keep);
  check_refused("async_sgd {}", 2, "LINEAR", linear, keep);
  check_refused("async_sgd { staleness: 2 }", 4, "SQRT", "of each of 4 learners by 2", keep);
  check_refused("async_sgd { push_every: 4 }", 2, "KEEP", "a push is the sum of 4 gradients",
                "set async_sgd.push_every: 1, or optimizer.sgd.momentum: 0");
  check_refused("async_sgd { push_every: 4 }", 2, "LINEAR", linear + ", and a push is the sum of 4 gradients",
                keep + " and async_sgd.push_every: 1, or optimizer.sgd.momentum: 0");
  check_refused("s_sgd {} switch { at_epoch: 1 async_sgd {} }", 8, "KEEP", "8 learners that push late steps diverge",
                "begin the job with async_sgd { warm_start_epochs: 0 }");
  check_refused("async_sgd { warm_start_epochs: 1 }", 8, "KEEP", "8 learners that push late steps diverge", "begin");
  check_refused("ea_sgd {}", 4, "LINEAR", "ea_sgd lets each take 10 steps alone", keep);
  check_refused("slow_mo {}", 4, "LINEAR", "slow_mo multiplies the effective learning rate", keep);
  check_refused("ea_sgd {}", 4, "SQRT", "ea_sgd lets each take 10 steps alone", keep);
  check_refused("slow_mo {}", 2, "LINEAR", "slow_mo lets each take 48 steps alone", keep);
  check_refused("swap {}", 2, "LINEAR", linear + ", and under swap each trains alone", keep);
  check_refused("s_sgd {} switch { at_epoch: 1 swap {} }", 2, "LINEAR", "under swap each trains alone", keep);
  check_refused("bmuf {}", 2, "LINEAR", "bmuf multiplies the effective learning rate by rate / (1 - momentum) = 2, and",
                keep);
  check_refused("bmuf {}", 2, "SQRT", "SQRT multiplies the learning rate of each of 2 learners by 1.41", keep);
  check_refused("swap {}", 2, "SQRT", "under swap each trains alone", keep);
  // 1 - 0.7 / 2: the gain is then 2.
  check_refused("diloco { period: 50 }", 2, "KEEP", "diloco multiplies the effective learning rate",
                "set diloco.momentum: 0.65");
  check_refused("diloco { period: 50 }", 2, "LINEAR", linear,
                "set learning_rate.with_learners: KEEP and diloco.momentum: 0.65");
  // Of eight learners a gain of 4 is advised: 1 - 1 / 4, where the default is 7/8.
  check_refused("bmuf {}", 8, "SQRT", "rate / (1 - momentum) = 8, and", keep + " and bmuf.momentum: 0.75");
}

TEST_CASE("a refused job is accepted with the setting that its error names") {
  for (const char* scheme :
       {"hogwild {}", "async_sgd {}", "ea_sgd {}", "slow_mo {}", "swap {}", "bmuf {}", "async_sgd { staleness: 2 }",
        "diloco { period: 50 momentum: 0.65 }", "s_sgd {} switch { at_epoch: 1 swap {} }"}) {
    for (const int learners : {2, 4, 8}) CHECK_NOTHROW(begin(with(scheme, learners, "KEEP")));
  }
}

TEST_CASE("growing steps are no reason to refuse a job whose steps are bounded otherwise") {
  const std::string hogwild = "hogwild {}";
  CHECK_NOTHROW(begin(with(hogwild, 1, "LINEAR")));
  CHECK_NOTHROW(begin(with(hogwild, 2, "LINEAR", "zoo { lenet {} }", "0.5")));
  CHECK_NOTHROW(begin(with(hogwild, 2, "LINEAR", "zoo { logistic_regression {} }")));
  CHECK_NOTHROW(begin(with("async_sgd {}", 8, "LINEAR", "zoo { logistic_regression {} }")));
  // The sum of several gradients is a longer step even there.
  CHECK_THAT(refusal(with("async_sgd { push_every: 4 }", 2, "KEEP", "zoo { logistic_regression {} }")),
             ContainsSubstring("a push is the sum of 4 gradients"));
  CHECK_NOTHROW(begin(with(
      hogwild, 2, "LINEAR",
      "layers { name: 'a' input: 'image' conv { filters: 8 kernel: 3 } } layers { name: 'n' input: 'a' batch_norm {} } "
      "layers { name: 'b' input: 'n' dense { units: 10 } } "
      "layers { name: 'loss' input: ['b', 'label'] softmax_cross_entropy {} }")));
  CHECK_NOTHROW(begin(with(hogwild, 2, "LINEAR"), {"learning_rate.limit=0.01"}));  // so the factor is 1
  CHECK_NOTHROW(begin(with("swap {}", 8, "LINEAR"), {"learning_rate.limit=0.01"}));
  for (const char* scheme :
       {"sma {}", "s_sgd {}", "local_sgd {}", "lookahead {}", "async_sgd { staleness: 0 }", "ea_sgd { period: 4 }"}) {
    CHECK_NOTHROW(begin(with(scheme, 8, "LINEAR")));
  }
}

TEST_CASE("with momentum, async_sgd divides pushes by their staleness and has no warm start by default") {
  const auto read = [](const std::string& scheme, const std::string& momentum) {
    return parse(with(scheme, 4, "KEEP", "zoo { lenet {} }", momentum));
  };
  const JobOptions scaled = read("async_sgd { staleness: 2 }", "0.9");
  CHECK(scaled.synchronization.scale_by_staleness);
  CHECK(scaled.synchronization.scheme == sma::Scheme::kAsyncSgd);
  CHECK(scaled.switches.empty());
  CHECK_FALSE(warns_of_scheme(scaled));
  CHECK(parse(scaled.resolved_text).resolved_text == scaled.resolved_text);

  const JobOptions plain = read("async_sgd { staleness: 2 }", "0");
  REQUIRE(plain.switches.size() == 1);
  CHECK(plain.switches[0].at_epoch == 1.0);
  CHECK_FALSE(plain.switches[0].to.scale_by_staleness);

  CHECK(read("s_sgd {} switch { at_epoch: 1 async_sgd {} }", "0.9").switches[0].to.scale_by_staleness);
  // What the job says stays.
  const JobOptions written = read("async_sgd { scale_by_staleness: false warm_start_epochs: 2 }", "0.9");
  REQUIRE(written.switches.size() == 1);
  CHECK(written.switches[0].at_epoch == 2.0);
  CHECK_FALSE(written.switches[0].to.scale_by_staleness);
  // It is s_sgd, where no push is stale, and nobody wrote the field that has no effect.
  const JobOptions synchronous = read("async_sgd { staleness: 0 }", "0.9");
  CHECK_FALSE(synchronous.synchronization.scale_by_staleness);
  CHECK_FALSE(warns_of_scheme(synchronous));
}

TEST_CASE("the momentum to be taken out is that of the job's optimizer") {
  const auto with_optimizer = [](const std::string& optimizer) {
    std::string text = with("hogwild {}", 2, "LINEAR");
    const std::string sgd = "sgd { momentum: 0.9 }";
    return text.replace(text.find(sgd), sgd.size(), optimizer);
  };
  const std::string keep = "set learning_rate.with_learners: KEEP and optimizer.";
  CHECK_THAT(refusal(with_optimizer("rmsprop { momentum: 0.9 }")), ContainsSubstring(keep + "rmsprop.momentum: 0"));
  CHECK_THAT(refusal(with_optimizer("sgd { momentum: 0.9 nesterov: true }")),
             ContainsSubstring(keep + "sgd.momentum: 0 and optimizer.sgd.nesterov: false"));
}

}  // namespace arbalest::jobs
