// The values of `synchronization`: their defaults, the options they set, and their resolved text.
#include "options/text/field_documentation.h"
#include "tests/jobs/job_text.h"
#include "tests/jobs/same_synchronization.h"
#include "tests/support/source_directory.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::jobs {

TEST_CASE("the documentation states the defaults of momentum that follow from the number of learners") {
  const auto momentum = [](const std::string& scheme, int learners) {
    return parse(std::string(kGoodJob), {"synchronization=" + scheme}).synchronization.momentum_for(learners);
  };
  CHECK_THAT(field_documentation("synchronization.bmuf.momentum"), ContainsSubstring("In [0, 1). Default: 1 - 1/k."));
  for (const int k : {1, 2, 8}) CHECK(momentum("bmuf", k) == 1.0F - 1.0F / static_cast<float>(k));
  CHECK_THAT(field_documentation("synchronization.slow_mo.momentum"),
             ContainsSubstring("Default: 0 for fewer than 4 learners, 0.2 for fewer than 8, 0.5 for fewer than 16, "));
  for (const auto& [k, value] : std::vector<std::pair<int, float>>{
           {1, 0.0F}, {3, 0.0F}, {4, 0.2F}, {7, 0.2F}, {8, 0.5F}, {15, 0.5F}, {16, 0.6F}, {64, 0.6F}}) {
    CHECK(momentum("slow_mo", k) == value);
  }
}

TEST_CASE("every field of a synchronization sets its option and is in the resolved text") {
  const auto read = [](const std::string& synchronization) {
    const JobOptions job = parse(std::string(kGoodJob), {"synchronization={" + synchronization + "}",
                                                         "learning_rate.step={epochs: 3 factor: 0.5}"});
    const JobOptions again = parse(job.resolved_text);
    check_same_synchronization(again, job);
    CHECK(again.resolved_text == job.resolved_text);
    CHECK(again.warnings == job.warnings);
    return job;
  };
  using sma::LocalState;
  using sma::Options;
  using sma::Scheme;
  const auto with = [](Scheme scheme, const auto& set) {
    Options options = sma::defaults_of(scheme);
    set(options);
    return options;
  };
  struct Case {
    std::string text;
    Options expected;
  };
  for (const Case& test : std::vector<Case>{
           {"", sma::defaults_of(Scheme::kSma)},
           {"sma {}", sma::defaults_of(Scheme::kSma)},
           {"ea_sgd {}", sma::defaults_of(Scheme::kEaSgd)},
           {"s_sgd {}", sma::defaults_of(Scheme::kSSgd)},
           {"local_sgd {}", sma::defaults_of(Scheme::kLocalSgd)},
           {"bmuf {}", sma::defaults_of(Scheme::kBmuf)},
           {"slow_mo {}", sma::defaults_of(Scheme::kSlowMo)},
           {"diloco { period: 300 }", with(Scheme::kDiloco,
                                           [](Options& o) {
                                             o.outer_rate = 0.7F;
                                             o.momentum = 0.9F;
                                             o.nesterov = true;
                                             o.period = 300;
                                           })},
           {"lookahead {}", sma::defaults_of(Scheme::kLookahead)},
           {"swap {}", sma::defaults_of(Scheme::kSwap)},
           {"sma { alpha: 0.3 central_momentum: 0.25 period: 7 }", with(Scheme::kSma,
                                                                        [](Options& o) {
                                                                          o.pull = 0.3F;
                                                                          o.momentum = 0.25F;
                                                                          o.period = 7;
                                                                        })},
           {"ea_sgd { beta: 0.6 period: 3 }", with(Scheme::kEaSgd,
                                                   [](Options& o) {
                                                     o.pull_of_all = 0.6F;
                                                     o.momentum = 0.0F;
                                                     o.period = 3;
                                                   })},
           {"s_sgd { bucket_mb: 0.5 }", with(Scheme::kSSgd,
                                             [](Options& o) {
                                               o.momentum = 0.0F;
                                               o.bucket_bytes = 1 << 19;
                                             })},
           {"local_sgd { period: 9 qsr: 0.0123 local_state: ZERO }", with(Scheme::kLocalSgd,
                                                                          [](Options& o) {
                                                                            o.momentum = 0.0F;
                                                                            o.period = 9;
                                                                            o.rate_coefficient = 0.0123;
                                                                            o.local_state = LocalState::kZero;
                                                                          })},
           {"bmuf { rate: 0.9 momentum: 0.3 nesterov: true period: 8 local_state: AVERAGE }",
            with(Scheme::kBmuf,
                 [](Options& o) {
                   o.outer_rate = 0.9F;
                   o.momentum = 0.3F;
                   o.nesterov = true;
                   o.period = 8;
                   o.local_state = LocalState::kAverage;
                 })},
           {"slow_mo { rate: 1.1 momentum: 0.3 period: 8 local_state: ZERO }", with(Scheme::kSlowMo,
                                                                                    [](Options& o) {
                                                                                      o.outer_rate = 1.1F;
                                                                                      o.momentum = 0.3F;
                                                                                      o.period = 8;
                                                                                      o.local_state = LocalState::kZero;
                                                                                    })},
           {"lookahead { rate: 0.6 momentum: 0.4 period: 8 local_state: KEEP }",
            with(Scheme::kLookahead, [](Options& o) {
              o.outer_rate = 0.6F;
              o.momentum = 0.4F;
              o.period = 8;
            })}}) {
    INFO(test.text);
    check_same_scheme(read(test.text).synchronization, test.expected);
    if (test.text.empty()) continue;
    const JobOptions switched = read("s_sgd {} switch { at_drop: 2 " + test.text + " }");
    REQUIRE(switched.switches.size() == 1);
    check_same_scheme(switched.switches[0].to, test.expected);
    CHECK(switched.switches[0].at_epoch == 6.0);
    CHECK(switched.switches[0].with_learners == switched.learning_rate.with_learners);
  }
  const JobOptions many = read(
      "swap {} switch { at_epoch: 1.5 learners: 1 with_learners: LINEAR sma {} } "
      "switch { at_epoch: 2.25 ea_sgd { period: 2 } }");
  REQUIRE(many.switches.size() == 2);
  CHECK(many.switches[0].with_learners == scheduler::RateScaling::kLinear);
  CHECK(many.switches[0].learners_per_device == std::vector<int>(many.devices.size(), 1));
  CHECK(many.switches[0].path == "synchronization.switch[0].sma");
  CHECK(many.switches[1].with_learners == scheduler::RateScaling::kLinear);  // as before
  CHECK(many.switches[1].learners_per_device.empty());
}

}  // namespace arbalest::jobs
