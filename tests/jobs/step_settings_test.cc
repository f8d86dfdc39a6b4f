// The advice about settings after a run has diverged.
#include "train/divergence/step_settings.h"

#include "tests/jobs/job_text.h"

namespace arbalest::jobs {

namespace {

// Returns the advice to a run of the valid job, with 4 learners and momentum, that diverged at this epoch.
std::string advice(const std::vector<std::string>& settings, double epoch = 3.0) {
  std::vector<std::string> all{"learners.per_device.fixed=4", "devices=cpu", "optimizer=sgd{momentum: 0.9}"};
  all.insert(all.end(), settings.begin(), settings.end());
  RunSummary summary;
  summary.learners = 4;
  summary.epochs_begun = epoch;
  return advice_about_settings(parse(std::string(kGoodJob), all), summary, settings);
}

}  // namespace

TEST_CASE("advice after a divergence: settings that change the steps are named together") {
  CHECK(advice({"training.seed=2", "checkpoint.keep_last=1"}).empty());
  CHECK(advice({"synchronization.report_loss_gap=true", "synchronization.compare_rounds=5"}).empty());
  CHECK(advice({"training.seed=2", "learning_rate.base=5"}) ==
        "this run has --set learning_rate.base=5, which changes the length of the steps; lower learning_rate.base");
  CHECK(advice({"learning_rate.base=5", "training.batch_size=8"}) ==
        "this run has --set learning_rate.base=5 and --set training.batch_size=8, which change the length of the "
        "steps; lower learning_rate.base");
}

TEST_CASE("advice after a divergence: it is that of the scheme that has diverged") {
  const std::string of_server =
      "; lower learning_rate.base or the optimizer's momentum 0.9, or train fewer learners (4 that do not wait for "
      "each "
      "other act like a momentum of 0.75), or bound async_sgd.staleness";
  const std::vector<std::string> pushing{"synchronization=async_sgd"};
  CHECK(advice(pushing) ==
        "this run has --set synchronization=async_sgd, which changes the length of the steps" + of_server);
  const std::vector<std::string> warm{"synchronization=async_sgd{warm_start_epochs: 1 scale_by_staleness: false}"};
  CHECK_THAT(advice(warm, 0.5), !ContainsSubstring("momentum"));  // in the warm start
  CHECK_THAT(advice(warm), ContainsSubstring(of_server + ", or set async_sgd.scale_by_staleness: true"));
  CHECK_THAT(advice({"synchronization=async_sgd{push_every: 4 staleness: 2 scale_by_staleness: true}",
                     "optimizer.sgd.momentum=0.5"}),
             ContainsSubstring("lower async_sgd.staleness: 2") && ContainsSubstring("lower async_sgd.push_every") &&
                 !ContainsSubstring("scale_by_staleness: true,"));
  const std::vector<std::string> later{"synchronization={async_sgd {} switch { at_epoch: 5 sma {} }}"};
  CHECK_THAT(advice(later, 4.5), ContainsSubstring(of_server));
  CHECK_THAT(advice(later, 5.5), !ContainsSubstring("momentum 0.9"));
  CHECK_THAT(advice({"synchronization=hogwild"}),
             ContainsSubstring("or the optimizer's momentum 0.9") && !ContainsSubstring("staleness"));
}

TEST_CASE("advice after a divergence: sparse models have their own") {
  const std::string job =
      "name: \"sparse\" model { sparse_logistic {} } data { libsvm { directory: \"rows\" features: 30 } }\n"
      "devices: \"cpu\" learners { per_device { fixed: 3 } }\n";
  RunSummary summary;
  summary.learners = 3;
  const auto advice_of = [&](const std::string& more, const std::vector<std::string>& settings) {
    return advice_about_settings(parse(job + more, settings), summary, settings);
  };
  CHECK_THAT(
      advice_of("synchronization { delayed_proximal { l1: 1 } }", {"synchronization.delayed_proximal.max_delay=2"}),
      ContainsSubstring("lower delayed_proximal.step or largest_bound, or lower delayed_proximal.max_delay") &&
          !ContainsSubstring("learning_rate"));
  CHECK_THAT(advice_of("synchronization { hogwild {} } learning_rate { base: 1 }", {"learning_rate.base=9"}),
             ContainsSubstring("lower learning_rate.base, or train fewer learners (3 that"));
}

}  // namespace arbalest::jobs
