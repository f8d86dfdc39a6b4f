// The advice to users whose training diverges.
#include "sma/divergence_remedy.h"

#include <string>

#include "tests/support/catch.h"

namespace arbalest::sma {

using Catch::Matchers::StartsWith;

TEST_CASE("the advice names what a scheme without rounds adds to the momentum, and what it has against that") {
  Options options = defaults_of(Scheme::kAsyncSgd);
  const std::string pushing = divergence_remedy(options, 4, 0.9F);
  CHECK_THAT(pushing, StartsWith("lower learning_rate.base") && ContainsSubstring("the optimizer's momentum 0.9") &&
                          ContainsSubstring("fewer learners (4 that") && ContainsSubstring("a momentum of 0.75") &&
                          ContainsSubstring("bound async_sgd.staleness") &&
                          ContainsSubstring("async_sgd.scale_by_staleness: true") && !ContainsSubstring("push_every"));
  CHECK_THAT(divergence_remedy(options, 4, 0.0F),
             !ContainsSubstring("optimizer") && ContainsSubstring("a momentum of"));
  options.scale_by_staleness = true;
  options.period = 8;
  CHECK_THAT(divergence_remedy(options, 4, 0.9F), !ContainsSubstring("scale_by_staleness") &&
                                                      ContainsSubstring("async_sgd.push_every") &&
                                                      ContainsSubstring("8 gradients"));
  options.staleness = 4;
  CHECK_THAT(divergence_remedy(options, 4, 0.9F), ContainsSubstring("lower async_sgd.staleness: 4"));
  options.staleness = 0;
  CHECK_THAT(divergence_remedy(options, 4, 0.9F), !ContainsSubstring("staleness"));
  CHECK_THAT(divergence_remedy(defaults_of(Scheme::kHogwild), 2, 0.5F),
             ContainsSubstring("momentum 0.5") && ContainsSubstring("fewer learners (2 that") &&
                 !ContainsSubstring("staleness"));
}

TEST_CASE("where learners wait for each other, or there is one, the advice is to lower the learning rate") {
  CHECK(divergence_remedy(defaults_of(Scheme::kSma), 4, 0.9F) == "lower learning_rate.base");
  for (const Scheme scheme : {Scheme::kAsyncSgd, Scheme::kHogwild}) {
    CHECK(divergence_remedy(defaults_of(scheme), 1, 0.9F) == "lower learning_rate.base");
  }
  Options synchronous = defaults_of(Scheme::kAsyncSgd);
  synchronous.staleness = 0;
  CHECK(divergence_remedy(synchronous, 4, 0.9F) == "lower learning_rate.base");
}

TEST_CASE("the advice for models over sparse rows") {
  CHECK(hogwild_rows_remedy(1) == "lower learning_rate.base");
  CHECK_THAT(hogwild_rows_remedy(4), ContainsSubstring("fewer learners (4 that") && !ContainsSubstring("optimizer"));
  CHECK_THAT(delayed_proximal_remedy(0), ContainsSubstring("delayed_proximal.step") && !ContainsSubstring("max_delay"));
  CHECK_THAT(delayed_proximal_remedy(2),
             ContainsSubstring("max_delay") && ContainsSubstring("2 blocks") && !ContainsSubstring("learning_rate"));
}

}  // namespace arbalest::sma
