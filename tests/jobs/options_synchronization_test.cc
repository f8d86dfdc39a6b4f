// `synchronization` of a job: its schemes, their bounds, and switches between them.
#include <algorithm>
#include <limits>

#include "options/readers/learners_reader.h"
#include "options/readers/schedule_check.h"
#include "tests/jobs/job_text.h"

namespace arbalest::jobs {

using Catch::Matchers::StartsWith;

namespace {

constexpr const char* kLearners = "learners { per_device { fixed: 2 } }";

// Returns the valid job with this synchronization in line 7.
std::string with(std::string_view synchronization) {
  return std::string(kGoodJob) + "synchronization { " + std::string(synchronization) + " }\n";
}

// Returns the job with other learners and on one device, so that the result does not depend on the machine.
std::string with(std::string_view synchronization, std::string_view learners) {
  return changed(kLearners, "learners { per_device { " + std::string(learners) + " } }") + "devices: \"cpu\"\n" +
         "synchronization { " + std::string(synchronization) + " }\n";
}

struct Wrong {
  std::string synchronization;
  std::string where;  // the text at the reported position must begin with this
  std::string said;
};

void check_all(const std::vector<Wrong>& cases) {
  for (const Wrong& wrong : cases) {
    CAPTURE(wrong.synchronization);
    const std::string text = with(wrong.synchronization);
    const std::size_t line = text.find("synchronization {");
    const std::size_t at = text.find(wrong.where, line);
    REQUIRE(at != std::string::npos);
    CHECK_THAT(refusal(text), StartsWith(fmt::format("job.txtpb:7:{}: error: {}", at - line + 1, wrong.said)));
  }
}

}  // namespace

TEST_CASE("an unknown scheme is refused, and the error suggests the nearest one") {
  check_all({
      {"local_sdg {}", "local_sdg", "no field 'local_sdg' in synchronization; did you mean 'local_sgd'?"},
      {"ssgd {}", "ssgd", "no field 'ssgd' in synchronization; did you mean 's_sgd'?"},
      {"switch { at_epoch: 1 slowmo {} }", "slowmo", "no field 'slowmo' in switch; did you mean 'slow_mo'?"},
      {"sma {} s_sgd {}", "s_sgd", "'s_sgd' and 'sma' exclude each other; remove one of them"},
  });
  CHECK_THAT(refusal(with("adam {}")),
             ContainsSubstring("sma, ea_sgd, s_sgd, local_sgd, bmuf, slow_mo, diloco, lookahead, swap, "
                               "delayed_proximal, hogwild, async_sgd, switch"));
}

TEST_CASE("a parameter that a scheme does not have is refused, and the error lists its parameters") {
  check_all({
      {"s_sgd { alpha: 0.1 }", "alpha: 0.1",
       "no field 'alpha' in s_sgd, whose fields are bucket_mb; 'alpha' is a field of sma"},
      {"swap { period: 4 }", "period: 4",
       "no field 'period' in swap, which has none; 'period' is a field of sma, ea_sgd, local_sgd, bmuf"},
      {"local_sgd { momentum: 0.1 }", "momentum: 0.1",
       "no field 'momentum' in local_sgd, whose fields are period, qsr, local_state; 'momentum' is a field of bmuf"},
  });
}

TEST_CASE("parameters of every scheme that are out of bounds are refused") {
  check_all({
      {"sma { alpha: 0 }", "alpha: 0", "alpha must be in (0, 1], not 0"},
      {"sma { alpha: 1.5 }", "alpha: 1.5", "alpha must be in (0, 1], not 1.5"},
      {"sma { alpha: nan }", "alpha: nan", "alpha must be a finite number, not nan"},
      {"sma { central_momentum: 1 }", "central_momentum: 1", "central_momentum must be in [0, 1), not 1"},
      {"sma { central_momentum: -0.1 }", "central_momentum: -0.1", "central_momentum must be in [0, 1), not -0.1"},
      {"sma { period: 0 }", "period: 0", "period must be in [1, 1000], not 0"},
      {"sma { period: 1001 }", "period: 1001", "period must be in [1, 1000], not 1001"},
      {"ea_sgd { beta: 0 }", "beta: 0", "beta must be in (0, 2), not 0"},
      {"ea_sgd { beta: 2 }", "beta: 2", "beta must be in (0, 2), not 2"},
      {"ea_sgd { period: 1001 }", "period: 1001", "period must be in [1, 1000], not 1001"},
      {"s_sgd { bucket_mb: 0 }", "bucket_mb: 0", "bucket_mb must be in (0, 1024], not 0"},
      {"s_sgd { bucket_mb: 1025 }", "bucket_mb: 1025", "bucket_mb must be in (0, 1024], not 1025"},
      {"s_sgd { bucket_mb: inf }", "bucket_mb: inf", "bucket_mb must be a finite number; the largest is"},
      {"local_sgd { period: 0 }", "period: 0", "period must be in [1, 100000], not 0"},
      {"local_sgd { qsr: 0 }", "qsr: 0", "qsr must be in (0, 1000000], not 0"},
      {"local_sgd { qsr: -1 }", "qsr: -1", "qsr must be in (0, 1000000], not -1"},
      {"local_sgd { local_state: KEPT }", "KEPT", "'KEPT' is not a value of local_state; did you mean 'KEEP'?"},
      {"bmuf { rate: 0 }", "rate: 0", "rate must be in (0, 100], not 0"},
      {"bmuf { momentum: 1 }", "momentum: 1", "momentum must be in [0, 1), not 1"},
      {"bmuf { period: 100001 }", "period: 100001", "period must be in [1, 100000], not 100001"},
      {"slow_mo { rate: -1 }", "rate: -1", "rate must be in (0, 100], not -1"},
      {"slow_mo { momentum: -1 }", "momentum: -1", "momentum must be in [0, 1), not -1"},
      {"diloco { rate: 101 }", "rate: 101", "rate must be in (0, 100], not 101"},
      {"diloco { momentum: 1 }", "momentum: 1", "momentum must be in [0, 1), not 1"},
      {"diloco { period: 0 }", "period: 0", "period must be in [1, 100000], not 0"},
      {"lookahead { rate: 0 }", "rate: 0", "rate must be in (0, 100], not 0"},
      {"lookahead { momentum: 1 }", "momentum: 1", "momentum must be in [0, 1), not 1"},
      {"lookahead { period: -5 }", "period: -5", "period must be in [1, 100000], not -5"},
      {"switch { at_epoch: 1 bmuf { momentum: 1 } }", "momentum: 1", "momentum must be in [0, 1), not 1"},
      {"async_sgd { staleness: -1 }", "staleness: -1", "staleness must be in [0, 1000], not -1"},
      {"async_sgd { push_every: 0 }", "push_every: 0", "push_every must be in [1, 1000], not 0"},
      {"async_sgd { warm_start_epochs: -1 }", "warm_start_epochs: -1", "warm_start_epochs must be in [0, 10), not -1"},
      {"async_sgd { warm_start_epochs: 10 }", "warm_start_epochs: 10",
       "warm_start_epochs must be in [0, 10), not 10: it must leave epochs of training.max_epochs to async_sgd"},
      {"async_sgd { staleness: 0 warm_start_epochs: 10 }", "warm_start_epochs: 10", "warm_start_epochs must be in"},
      {"switch { at_epoch: 2 async_sgd { staleness: -3 } }", "staleness: -3", "staleness must be in [0, 1000], not -3"},
      {"switch { at_epoch: 2 async_sgd { warm_start_epochs: 1 } }", "warm_start_epochs: 1",
       "warm_start_epochs has no effect in a switch; remove it"},
      {"async_sgd {} switch { at_epoch: 0.5 swap {} }", "at_epoch: 0.5",
       "switches must ascend: epoch 0.5 does not follow 1, where the warm start of async_sgd ends (warm_start_epochs)"},
  });
}

TEST_CASE("all errors of a synchronization are reported at once") {
  CHECK_THAT(refusal(with("sma { alpha: 2 period: 0 } switch { at_epoch: 1 diloco { momentum: 2 } }")),
             ContainsSubstring("alpha must be in") && ContainsSubstring("period must be in") &&
                 ContainsSubstring("momentum must be in") && ContainsSubstring("\n3 errors"));
}

TEST_CASE("outer learning rates at or above the stability bound are refused") {
  check_all({
      {"diloco { rate: 1.36 period: 10 }", "rate: 1.36",
       "diloco with rate 1.36 and momentum 0.9 is unstable: rate must stay below 2 (1 + momentum) / (1 + 2 momentum) = "
       "1.357; lower rate"},
      {"bmuf { rate: 1.5 momentum: 0.5 nesterov: true }", "rate: 1.5",
       "bmuf with rate 1.5 and momentum 0.5 is unstable: rate must stay below 2 (1 + momentum) / (1 + 2 momentum) = "
       "1.5"},
      {"bmuf { rate: 3 momentum: 0.5 }", "rate: 3",
       "bmuf with rate 3 and momentum 0.5 is unstable: rate must stay below 2 (1 + momentum) = 3"},
      {"slow_mo { rate: 2 }", "rate: 2", "slow_mo with rate 2 and momentum 0 is unstable"},
      {"lookahead { rate: 2.5 }", "rate: 2.5", "lookahead with rate 2.5 and momentum 0 is unstable"},
      {"switch { at_epoch: 1 diloco { rate: 1.4 period: 10 } }", "rate: 1.4", "diloco with rate 1.4 and momentum 0.9"},
  });
  for (const std::string good :
       {"diloco { rate: 1.35 period: 10 }", "bmuf { rate: 1.49 momentum: 0.5 nesterov: true }",
        "bmuf { rate: 2.99 momentum: 0.5 }", "slow_mo { rate: 1.99 }", "lookahead { rate: 1.99 }"}) {
    CAPTURE(good);
    CHECK_NOTHROW(parse(with(good)));
  }
  // bmuf's own momentum depends on the number of learners: 1 - 1/2, and 1 - 1/8.
  CHECK_THAT(refusal(with("bmuf { rate: 1.4 nesterov: true }", "fixed: 8")),
             ContainsSubstring("bmuf with rate 1.4 and momentum 0.875 is unstable"));
  CHECK_NOTHROW(parse(with("bmuf { rate: 1.4 nesterov: true }")));
}

TEST_CASE("alpha and beta at or above the stability bound are refused") {
  check_all({
      {"sma { alpha: 0.7 central_momentum: 0 }", "alpha: 0.7",
       "2 learners with alpha 0.7 and central_momentum 0 are unstable: learners x alpha = 1.4 must stay below (1 + "
       "central_momentum)(2 - alpha) = 1.3; leave alpha unset (it is then 1/learners)"},
      {"ea_sgd { beta: 1.4 }", "beta: 1.4",
       "2 learners with beta 1.4 are unstable: beta must stay below 2 - beta / learners, that is below 1.33; lower "
       "beta"},
      {"switch { at_epoch: 1 ea_sgd { beta: 1.5 } }", "beta: 1.5", "2 learners with beta 1.5 are unstable"},
  });
  CHECK_NOTHROW(parse(with("sma { alpha: 0.6 central_momentum: 0 }")));
  CHECK_NOTHROW(parse(with("ea_sgd { beta: 1.3 }")));
  CHECK_NOTHROW(parse(with("ea_sgd { beta: 1.8 }", "fixed: 10")));  // 20/11
}

TEST_CASE("a switch is checked for stability with its own number of learners") {
  const std::string few = "switch { at_epoch: 1 learners: 2 local_sgd {} } switch { at_epoch: 2 sma { alpha: 0.5 } }";
  CHECK_NOTHROW(parse(with("s_sgd {} " + few, "fixed: 8")));
  CHECK_THAT(refusal(with("s_sgd {} switch { at_epoch: 2 sma { alpha: 0.5 } }", "fixed: 8")),
             ContainsSubstring("8 learners with alpha 0.5"));
}

TEST_CASE("a schedule is checked for stability with the momentum of each number of learners") {
  const std::string growing = "schedule { step { learners: 1 } step { at_batch: 200 learners: 8 } }";
  // The bound is 2 (1 + momentum): 2 for one learner, whose momentum is 0, and 3.75 for eight.
  CHECK_THAT(refusal(with("bmuf { rate: 3.2 }", growing)),
             ContainsSubstring("bmuf with rate 3.2 and momentum 0 is unstable"));
  CHECK(parse(with("bmuf { rate: 3.2 }", "fixed: 8")).synchronization.outer_rate == 3.2F);
}

TEST_CASE("the loss gap cannot be combined with an average over time") {
  CHECK(parse(with("report_loss_gap: true")).reports_loss_gap);
  for (const char* average : {"moving_average_epochs: 0.5", "mean_from_epoch: 1"}) {
    const std::string text = changed("max_epochs: 10", std::string("max_epochs: 10 ") + average) +
                             "synchronization { report_loss_gap: true }\n";
    CHECK_THAT(refusal(text), ContainsSubstring("report_loss_gap compares the learners with the model as it is"));
  }
}

TEST_CASE("a loss gap of one learner is a warning") {
  const auto warnings = [](const std::string& synchronization, const std::string& learners,
                           const std::vector<std::string>& settings = {}) {
    std::vector<std::string> all = parse(with(synchronization, learners), settings).warnings;
    std::erase_if(all, [](const std::string& text) { return text.find("report_loss_gap") == std::string::npos; });
    return all;
  };
  const std::string asked = "report_loss_gap: true";
  const std::vector<std::string> one = warnings(asked, "fixed: 1");
  REQUIRE(one.size() == 1);
  CHECK_THAT(one.front(), StartsWith("synchronization.report_loss_gap: the job has one learner") &&
                              ContainsSubstring("remove report_loss_gap"));
  CHECK(warnings(asked, "auto { max: 1 }").size() == 1);
  CHECK(warnings(asked, "auto { max: 2 }").empty());
  CHECK(warnings(asked, "fixed: 2").empty());
  CHECK(warnings(asked + " switch { at_epoch: 1 learners: 1 sma {} }", "fixed: 2").empty());
  CHECK(warnings(asked, "growth { to: 2 }").empty());
  CHECK(warnings("", "fixed: 1").empty());
}

TEST_CASE("a mean over time must begin within the run, and excludes a moving average") {
  const auto with_average = [](const std::string& average) {
    return changed("max_epochs: 10", "max_epochs: 10 " + average);
  };
  CHECK(parse(with_average("mean_from_epoch: 1")).training.moving_average.mean_from_epoch == 1.0);
  CHECK_THAT(refusal(with_average("mean_from_epoch: 10")),
             ContainsSubstring("mean_from_epoch must be in [0, 10), not 10"));
  CHECK_THAT(refusal(with_average("mean_from_epoch: 1 moving_average_epochs: 1")),
             ContainsSubstring("mean_from_epoch and moving_average_epochs exclude each other"));
}

TEST_CASE("a gain in addition to LINEAR is a warning unless the learning rate warms up") {
  const auto warnings = [](std::string_view synchronization, std::string_view rate) {
    const std::string text = changed("base: 0.01", "base: 0.01 " + std::string(rate)) + "synchronization { " +
                             std::string(synchronization) + " }\n";
    return parse(text).warnings;
  };
  const std::string gain = "diloco { period: 20 }";
  REQUIRE(warnings(gain, "with_learners: LINEAR").size() == 1);
  CHECK(warnings(gain, "with_learners: LINEAR").front() ==
        "synchronization.diloco: diloco multiplies the effective learning rate by rate / (1 - momentum) = 7, and "
        "with_learners: LINEAR by 2 "
        "more, without a warm-up; set with_learners: KEEP or learning_rate.warm_up if the loss rises");
  CHECK(warnings(gain, "with_learners: LINEAR warm_up { epochs: 1 }").empty());
  CHECK(warnings(gain, "with_learners: LINEAR one_cycle {}").empty());
  CHECK(warnings(gain, "with_learners: SQRT").empty());
  CHECK(warnings(gain, "with_learners: KEEP").empty());
  CHECK(warnings("local_sgd {}", "with_learners: LINEAR").empty());  // the gain is 1
  CHECK(warnings("s_sgd {}", "with_learners: LINEAR").empty());
  // A switch is checked too, including its scaling of the learning rate.
  CHECK(warnings("s_sgd {} switch { at_epoch: 1 " + gain + " }", "with_learners: LINEAR").size() == 1);
  CHECK(warnings("s_sgd {} switch { at_epoch: 1 with_learners: LINEAR " + gain + " }", "").size() == 1);
  CHECK(warnings("s_sgd {} switch { at_epoch: 1 with_learners: KEEP " + gain + " }", "with_learners: LINEAR").empty());
  CHECK(warnings("s_sgd {} switch { at_epoch: 1 learners: 1 " + gain + " }", "with_learners: LINEAR").empty());
}

TEST_CASE("rounds longer than an epoch are refused, except for swap") {
  // An epoch has 625 mini-batches.
  CHECK_THAT(refusal(with("diloco {}")),
             StartsWith("job.txtpb:7:19: error: a round of 2 learners with period 500 needs 1,000 mini-batches, but an "
                        "epoch has 625; use a period of at most 312, fewer learners or smaller mini-batches"));
  CHECK_NOTHROW(parse(with("diloco {}", "fixed: 1")));
  CHECK_NOTHROW(parse(with("diloco { period: 312 }")));
  check_all({
      {"switch { at_epoch: 1 local_sgd { period: 313 } }", "period: 313",
       "a round of 2 learners with period 313 needs 626"},
  });
  CHECK_NOTHROW(parse(with("switch { at_epoch: 1 learners: 1 local_sgd { period: 625 } }")));
  CHECK_NOTHROW(parse(with("local_sgd { qsr: 1000 }")));
  CHECK_NOTHROW(parse(with("swap {}")));
  CHECK_NOTHROW(parse(with("switch { at_epoch: 9 swap {} }")));
  CHECK(refusal(std::string(kGoodJob), {"synchronization=diloco"}, engine::ErrorKind::kUsage) ==
        "--set synchronization=diloco: error: a round of 2 learners with period 500 needs 1,000 mini-batches, but an "
        "epoch has 625; use a period of at most 312, fewer learners or smaller mini-batches");
  CHECK_THAT(refusal(with("swap {}", "fixed: 626")), ContainsSubstring("a round of 626 learners with period 1"));
}

TEST_CASE("QSR's rounds grow as the learning rate falls, up to a limit") {
  const sma::Options qsr = parse(with("local_sgd { period: 3 qsr: 0.02 }")).synchronization;
  CHECK(qsr.period_at(0.02, 100) == 3);
  CHECK(qsr.period_at(0.01, 100) == 4);
  CHECK(qsr.period_at(0.0045, 100) == 19);  // floor(19.75)
  CHECK(qsr.period_at(0.001, 100) == 100);
  CHECK(qsr.period_at(0.0, 100) == 100);
  CHECK(qsr.period_at(0.001, 2) == 3);  // never below the period
  const sma::Options swap = parse(with("swap {}")).synchronization;
  CHECK(swap.period_at(0.01, 100) == std::numeric_limits<int>::max());
}

TEST_CASE("switches without a time or a scheme are refused") {
  check_all({
      {"switch { local_sgd {} }", "switch", "the switch does not say when; add at_epoch"},
      {"switch { at_epoch: 1 }", "switch",
       "the switch names no kind; add one, as in switch { at_epoch: 25 local_sgd {} }"},
      {"switch { at_epoch: 1 at_drop: 1 sma {} }", "at_drop: 1", "'at_drop' and 'at_epoch' exclude each other"},
      {"switch { at_epoch: 1 sma {} swap {} }", "swap", "'swap' and 'sma' exclude each other"},
      {"switch { at_drop: 1 sma {} }", "at_drop: 1",
       "the learning rate has no decay step 1: at_drop counts the decay steps"},
  });
}

TEST_CASE("switches that are out of order or outside the run are refused") {
  check_all({
      {"switch { at_epoch: 0 sma {} }", "at_epoch: 0",
       "a switch must come after the start: at_epoch must be above 0, not 0"},
      {"switch { at_epoch: -2 sma {} }", "at_epoch: -2",
       "a switch must come after the start: at_epoch must be above 0, not -2"},
      {"switch { at_epoch: nan sma {} }", "at_epoch: nan", "at_epoch must be a finite number, not nan"},
      {"switch { at_epoch: inf sma {} }", "at_epoch: inf", "at_epoch must be a finite number; the largest is"},
      {"switch { at_epoch: 10 sma {} }", "at_epoch: 10",
       "the run ends after 10 epochs (training.max_epochs): the switch at epoch "
       "10 would have no effect"},
      {"switch { at_epoch: 2 swap {} } switch { at_epoch: 1.5 sma {} }", "at_epoch: 1.5",
       "switches must ascend: epoch 1.5 does not follow 2"},
      {"switch { at_epoch: 2 swap {} } switch { at_epoch: 2 sma {} }", "at_epoch: 2 sma",
       "switches must ascend: epoch 2 does not"},
  });
  CHECK(parse(with("switch { at_epoch: 9.99 sma {} }")).switches.at(0).at_epoch == 9.99);
  CHECK(refusal(with("switch { at_epoch: 4 sma {} }"), {"training.max_epochs=3"}, engine::ErrorKind::kUsage) ==
        "--set training.max_epochs=3: error: the run ends after 3 epochs (training.max_epochs): the switch at epoch 4 "
        "would have no effect");
}

TEST_CASE("a switch may be placed at a drop of the learning rate") {
  const auto job = [](const std::string& at, const std::string& schedule) {
    return changed("base: 0.01", "base: 0.01 " + schedule) + "synchronization { switch { " + at + " local_sgd {} } }\n";
  };
  const std::string multistep = "multistep { drop { epoch: 2.5 factor: 0.1 } drop { epoch: 6 factor: 0.1 } }";
  CHECK(parse(job("at_drop: 1", multistep)).switches.at(0).at_epoch == 2.5);
  CHECK(parse(job("at_drop: 2", multistep)).switches.at(0).at_epoch == 6.0);
  CHECK(parse(job("at_drop: 2", "step { epochs: 3 factor: 0.1 }")).switches.at(0).at_epoch == 6.0);
  for (const std::string at : {"at_drop: 3", "at_drop: 0", "at_drop: -1"}) {
    CAPTURE(at);
    CHECK_THAT(refusal(job(at, multistep)), StartsWith("job.txtpb:7:28: error: the learning rate has no decay step "));
  }
  CHECK_THAT(refusal(job("at_drop: 4", "step { epochs: 3 factor: 0.1 }")),
             StartsWith("job.txtpb:7:28: error: ") && ContainsSubstring("10 epochs"));
}

TEST_CASE("a switch after the start of the last round is a warning") {
  // Returns only the warnings about rounds. Another warning may say that learners share a core.
  const auto warnings = [](const std::string& synchronization, const std::string& learners) {
    std::vector<std::string> all = parse(with(synchronization, learners)).warnings;
    std::erase_if(all, [](const std::string& text) { return text.find("no round begins") == std::string::npos; });
    return all;
  };
  // 10 epochs of 625 mini-batches. Rounds of 4 learners and period 5 have 20 mini-batches: the last begins at 6,240.
  const std::string four = "fixed: 4";
  CHECK(warnings("sma { period: 5 } switch { at_epoch: 9.984 local_sgd {} }", four).empty());
  const std::vector<std::string> late = warnings("sma { period: 5 } switch { at_epoch: 9.985 local_sgd {} }", four);
  REQUIRE(late.size() == 1);
  CHECK_THAT(late.front(), ContainsSubstring("synchronization.switch[0]: no round begins between epoch 9.985 and the "
                                             "end of the run (10 epochs), as a round of 4 learners with period 5 has "
                                             "20 of the 625 mini-batches of an epoch: it has no effect"));
  // The first switch leaves one learner, whose rounds have 5 mini-batches: the last begins at 6,245.
  const std::string fewer = "sma { period: 5 } switch { at_epoch: 9 learners: 1 sma { period: 5 } } ";
  CHECK(warnings(fewer + "switch { at_epoch: 9.992 swap {} }", four).empty());
  CHECK(warnings(fewer + "switch { at_epoch: 9.993 swap {} } switch { at_epoch: 9.995 sma {} }", four).size() == 1);
  // If two switches come before the same round, the first has no effect.
  CHECK(warnings("s_sgd {} switch { at_epoch: 2 swap {} } switch { at_epoch: 2.0064 sma {} }", four).empty());
  const std::vector<std::string> both =
      warnings("sma { period: 5 } switch { at_epoch: 2 swap {} } switch { at_epoch: 2.0001 sma {} }", four);
  REQUIRE(both.size() == 1);
  CHECK_THAT(both.front(), ContainsSubstring("synchronization.switch[0]: no round begins between epoch 2 and epoch "
                                             "2.0001, where synchronization.switch[1] follows: it has no effect"));
  const std::vector<std::string> fewer_learners = warnings(
      "sma { period: 5 } switch { at_epoch: 2 learners: 1 swap {} } switch { at_epoch: 2.0001 sma {} } "
      "switch { at_epoch: 9.9999 swap {} }",
      four);
  REQUIRE(fewer_learners.size() == 2);
  CHECK_THAT(fewer_learners.front(),
             ContainsSubstring("where synchronization.switch[1] follows: its scheme has no effect"));
  CHECK_THAT(fewer_learners.back(), ContainsSubstring("synchronization.switch[2]: no round begins"));
  // Every switch without effect is told, not only the first.
  const std::vector<std::string> three = warnings(
      "sma { period: 5 } switch { at_epoch: 2 swap {} } switch { at_epoch: 2.0001 sma {} } "
      "switch { at_epoch: 2.0002 local_sgd {} }",
      four);
  REQUIRE(three.size() == 2);
  CHECK_THAT(three.front(), ContainsSubstring("synchronization.switch[0]: no round begins between epoch 2 and"));
  CHECK_THAT(three.back(), ContainsSubstring("synchronization.switch[1]: no round begins between epoch 2.0001 and"));
  // A step of a schedule changes the rounds in the same way.
  const std::string scheduled = "schedule { step { learners: 4 } step { at_batch: 6240 learners: 1 } }";
  CHECK(warnings("sma { period: 5 } switch { at_epoch: 9.992 local_sgd {} }", scheduled).empty());
}

TEST_CASE("a switch cannot add learners") {
  check_all({
      {"switch { at_epoch: 1 learners: 3 sma {} }", "learners: 3",
       "the learners of a switch must be in [1, 2], because a switch cannot add learners; it is "
       "3"},
      {"switch { at_epoch: 1 learners: 0 sma {} }", "learners: 0",
       "the learners of a switch must be in [1, 2], because a switch cannot add learners; it is "
       "0"},
      {"switch { at_epoch: 1 learners: 1 sma {} } switch { at_epoch: 2 swap {} } switch { at_epoch: 3 learners: 2 sma "
       "{} }",
       "learners: 2", "the learners of a switch must be in [1, 1], because a switch cannot add learners; it is 2"},
  });
  const JobOptions job = parse(with("switch { at_epoch: 1 learners: 2 swap {} } switch { at_epoch: 2 sma {} }"));
  CHECK(job.switches.at(0).learners_per_device == std::vector<int>(job.devices.size(), 2));
  CHECK(job.switches.at(1).learners_per_device.empty());
  for (const std::string count : {"auto { max: 4 }", "schedule { step { learners: 2 } }"}) {
    CAPTURE(count);
    CHECK_THAT(refusal(with("switch { at_epoch: 1 learners: 1 sma {} }", count)),
               StartsWith("job.txtpb:8:40: error: learners of a switch need a fixed number before it; write learners { "
                          "per_device { fixed: ... } }"));
  }
}

TEST_CASE("a job that continues with fewer learners also has fewer after its switches") {
  const JobOptions job =
      parse(with("s_sgd {} switch { at_epoch: 1 learners: 3 swap {} } switch { at_epoch: 2 sma {} } "
                 "switch { at_epoch: 3 learners: 1 sma {} }",
                 "fixed: 4"));
  const JobOptions fewer = with_learners(job, 2, "there is no memory for more");
  REQUIRE(fewer.switches.size() == 3);
  CHECK(fewer.learners_per_device == std::vector<int>{2});
  CHECK(fewer.switches[0].learners_per_device == std::vector<int>{2});
  CHECK(fewer.switches[1].learners_per_device.empty());
  CHECK(fewer.switches[2].learners_per_device == std::vector<int>{1});
}

TEST_CASE("an error in a --set of the synchronization names the option") {
  for (const auto& [setting, said] : std::vector<std::pair<std::string, std::string>>{
           {"synchronization=s_sgd{alpha: 0.1}", "no field 'alpha' in s_sgd"},
           {"synchronization=sgd", "'sgd' is not an alternative of synchronization"},
           {"synchronization=diloco{rate: 1.5 period: 10}", "diloco with rate 1.5 and momentum 0.9 is unstable"},
           {"synchronization=ea_sgd{beta: 1.9}", "2 learners with beta 1.9 are unstable"},
           {"synchronization.sma.alpha=0.95", "2 learners with alpha 0.95"},
           {"synchronization.local_sgd.qsr=-1", "qsr must be in (0, 1000000], not -1"},
           {"synchronization={switch {at_epoch: 20 sma {}}}", "the run ends after 10 epochs"},
           {"synchronization={switch {at_epoch: 2 learners: 3 sma {}}}",
            "the learners of a switch must be in [1, 2]"}}) {
    CAPTURE(setting);
    CHECK_THAT(refusal(std::string(kGoodJob), {setting}, engine::ErrorKind::kUsage),
               StartsWith("--set " + setting + ": error: " + said));
  }
}

TEST_CASE("steps of a schedule must be at the start of an iteration of the current scheme") {
  const auto job = [](const std::string& synchronization, int at, int learners = 4) {
    return with(
        synchronization,
        fmt::format("schedule {{ step {{ learners: {} }} step {{ at_batch: {} learners: 2 }} }}", learners, at));
  };
  // Iterations of 4 mini-batches (one for each learner), and from epoch 1 (mini-batch 625) on of 12: 628, 640, 652.
  const std::string longer = "s_sgd {} switch { at_epoch: 1 sma { period: 3 } }";
  CHECK_NOTHROW(parse(job(longer, 624)));
  CHECK_NOTHROW(parse(job(longer, 628)));
  CHECK_NOTHROW(parse(job(longer, 640)));
  CHECK_THAT(refusal(job(longer, 644)), ContainsSubstring("job.txtpb:6:") &&
                                            ContainsSubstring("from mini-batch 628 on each round of 4 learners with "
                                                              "period 3 has 12 mini-batches: 644 lies within one; did "
                                                              "you mean 640 or 652?"));
  // The reverse: iterations of 12 (12, 24, ... 636), and then of 4.
  const std::string shorter = "sma { period: 3 } switch { at_epoch: 1 local_sgd {} }";
  CHECK_NOTHROW(parse(job(shorter, 636)));
  CHECK_NOTHROW(parse(job(shorter, 640)));
  CHECK_THAT(refusal(job(shorter, 632)), ContainsSubstring("did you mean 624 or 636?"));
  CHECK_THAT(refusal(job(shorter, 642)), ContainsSubstring("did you mean 640 or 644?"));
  // Schemes that assign the central model may end a round early. A step must only be a multiple of the number of
  // learners.
  CHECK_NOTHROW(parse(job("local_sgd { period: 5 }", 8)));
  CHECK_THAT(refusal(job("local_sgd { period: 5 }", 10)), ContainsSubstring("did you mean 8 or 12?"));
  // A switch between two steps of the schedule.
  const std::string twice =
      "schedule { step { learners: 4 } step { at_batch: 8 learners: 3 } step { at_batch: 632 learners: 1 } }";
  CHECK_NOTHROW(parse(with("s_sgd {} switch { at_epoch: 1 sma { period: 2 } }", twice)));  // 626, 632
  CHECK_THAT(refusal(with("s_sgd {} switch { at_epoch: 1 sma { period: 4 } }", twice)),
             ContainsSubstring("from mini-batch 626 on") && ContainsSubstring("did you mean 638?"));
}

TEST_CASE("check_steps takes switches into account once the size of the data is known") {
  const std::string images = "data={images { directory: 'own' classes: 2 decoding { height: 28 width: 28 } }}";
  const auto job = [&](int at) {
    return parse(with("s_sgd {} switch { at_epoch: 1 sma { period: 3 } }",
                      fmt::format("schedule {{ step {{ learners: 4 }} step {{ at_batch: {} learners: 2 }} }}", at)),
                 {images});
  };
  dataflow::FieldIssues issues;
  check_steps(job(640), 625, issues);
  CHECK(issues.empty());
  check_steps(job(644), 625, issues);
  REQUIRE(issues.all().size() == 1);
  CHECK(issues.all()[0].path == "learners.per_device.schedule.step[1].at_batch");
}

TEST_CASE("the error for a period longer than an epoch shows its position") {
  check_all({{"local_sgd { period: 400 }", "period: 400", "a round of 2 learners with period 400 needs 800 "}});
}

TEST_CASE("a NaN gives one error only") {
  CHECK_THAT(
      refusal(with("bmuf { momentum: nan }")),
      StartsWith("job.txtpb:7:26: error: momentum must be a finite number, not nan") && !ContainsSubstring("errors"));
}

TEST_CASE("the suggestion for a field of several schemes leaves the scheme open") {
  const std::string error = refusal(with("s_sgd {}"), {"synchronization.period=5"}, engine::ErrorKind::kUsage);
  CHECK_THAT(error,
             ContainsSubstring("no field 'period' in synchronization; did you mean '<kind>.period' with the kind "
                               "that the job has (sma, ea_sgd, "));
  CHECK_THAT(error, !ContainsSubstring("s_sgd"));
}

}  // namespace arbalest::jobs
