// Learning-rate schedules compared with a table, and their effect on averaging.
#include "scheduler/replicas/learning_rate.h"

#include <array>
#include <cmath>
#include <map>
#include <string>

#include "tests/support/catch.h"

namespace arbalest::scheduler {

namespace {

constexpr std::array kEpochs{0.0, 0.5, 1.0, 2.4, 2.5, 3.0, 4.4, 5.0, 7.25, 7.9, 8.0, 9.0};

struct Row {
  std::string curve;
  bool is_warmed;                            // over 2 epochs, from a quarter of the first learning rate
  std::array<double, kEpochs.size()> rates;  // at the epochs in kEpochs, for one learner with base 0.4
};

// Printed by learning_rate_table.py, which shares no code with the engine.
const std::vector<Row> kTable = {
    {"inverse",
     false,
     {{0.4, 0.338358804, 0.295115179, 0.221433325, 0.217732422, 0.201189349, 0.167185076, 0.156317989, 0.126831225,
       0.120533035, 0.119627902, 0.111375066}}},
    {"inverse",
     true,
     {{0.1, 0.175, 0.25, 0.34887838, 0.338358804, 0.295115179, 0.221433325, 0.201189349, 0.152257601, 0.142761851,
       0.141421356, 0.129464472}}},
    {"step", false, {{0.4, 0.4, 0.4, 0.4, 0.12, 0.12, 0.12, 0.036, 0.036, 0.0108, 0.0108, 0.0108}}},
    {"step", true, {{0.1, 0.175, 0.25, 0.4, 0.4, 0.4, 0.4, 0.12, 0.036, 0.036, 0.036, 0.036}}},
    {"multistep", false, {{0.4, 0.4, 0.4, 0.4, 0.4, 0.2, 0.2, 0.2, 0.02, 0.02, 0.02, 0.02}}},
    {"multistep", true, {{0.1, 0.175, 0.25, 0.4, 0.4, 0.2, 0.2, 0.2, 0.02, 0.02, 0.02, 0.02}}},
    {"exponential",
     false,
     {{0.4, 0.334664011, 0.28, 0.169939872, 0.163985365, 0.1372, 0.0832705374, 0.067228, 0.030131502, 0.0238965116,
       0.023059204, 0.0161414428}}},
    {"exponential",
     true,
     {{0.1, 0.175, 0.25, 0.346816066, 0.334664011, 0.28, 0.169939872, 0.1372, 0.0614928613, 0.048768391, 0.0470596,
       0.03294172}}},
    {"polynomial",
     false,
     {{0.4, 0.36678297, 0.334655519, 0.250838327, 0.245216159, 0.217878118, 0.148672904, 0.122670279, 0.0503337849,
       0.0405031153, 0.04, 0.04}}},
    {"polynomial",
     true,
     {{0.1, 0.175, 0.25, 0.373340367, 0.36678297, 0.334655519, 0.250838327, 0.217878118, 0.112554869, 0.0884168424,
       0.085, 0.0559099026}}},
    {"cosine",
     false,
     {{0.4, 0.396349203, 0.385537111, 0.321679198, 0.315558344, 0.282709852, 0.180277452, 0.137290148, 0.0281813362,
       0.0201464831, 0.02, 0.02}}},
    {"cosine",
     true,
     {{0.1, 0.175, 0.25, 0.397660785, 0.396349203, 0.385537111, 0.321679198, 0.282709852, 0.12043462, 0.0810278583,
       0.0756497116, 0.0344628888}}},
    {"cyclic",
     false,
     {{0.08, 0.293333333, 0.364444444, 0.165333333, 0.151111111, 0.08, 0.193777778, 0.151111111, 0.142222222,
       0.119111111, 0.115555556, 0.08}}},
    {"cyclic",
     true,
     {{0.02, 0.035, 0.05, 0.250666667, 0.293333333, 0.364444444, 0.165333333, 0.08, 0.133333333, 0.0871111111, 0.08,
       0.151111111}}},
    {"one_cycle",
     false,
     {{0.016, 0.0556761587, 0.158306743, 0.4, 0.399685364, 0.388776711, 0.286777201, 0.222393606, 0.0174448772,
       0.000316235738, 1.6e-06, 1.6e-06}}},
    {"one_cycle",
     true,
     {{0.004, 0.007, 0.01, 0.0417231225, 0.0556761587, 0.158306743, 0.4, 0.388776711, 0.194391571, 0.12346442,
       0.113224399, 0.0306566375}}}};

const std::map<std::string, LearningRateCurve>& curves() {
  static const std::map<std::string, LearningRateCurve> kCurves = {
      {"inverse", InverseDecay{0.5, 0.75}},
      {"step", StepDrops{2.5, 0.3}},
      {"multistep", MultistepDrops{{{3.0, 0.5}, {7.25, 0.1}}}},
      {"exponential", ExponentialDecay{0.7}},
      {"polynomial", PolynomialDecay{8.0, 1.5, 0.1}},
      {"cosine", CosineDecay{8.0, 0.05}},
      {"cyclic", Cyclic{3.0, 0.25, 0.2, 0.5}},
      {"one_cycle", OneCycle{.epochs = 8.0}}};
  return kCurves;
}

LearningRateSchedule schedule_of(const std::string& curve, bool is_warmed) {
  return {0.4, curves().at(curve), is_warmed ? WarmUp{2.0, 0.25} : WarmUp{}, RateScaling::kKeep};
}

}  // namespace

TEST_CASE("learning rates agree with the table", "[scheduler]") {
  CHECK(kTable.size() == 2 * curves().size());
  for (const Row& row : kTable) {
    const LearningRateSchedule schedule = schedule_of(row.curve, row.is_warmed);
    CHECK(name_of(schedule.curve) == row.curve);
    for (std::size_t i = 0; i < kEpochs.size(); ++i) {
      CAPTURE(row.curve, row.is_warmed, kEpochs[i]);
      CHECK(schedule.at(kEpochs[i], 4) == Approx(row.rates[i]).epsilon(1e-6));
    }
  }
}

TEST_CASE("a schedule with an end starts anew at each restart", "[scheduler]") {
  // Printed by learning_rate_table.py.
  constexpr std::array kRates{0.4,         0.385537111, 0.344350288, 0.151286771, 0.137290148, 0.0756497116,
                              0.385973183, 0.317932302, 0.02,        0.181856614, 0.172175144, 0.0378248558};
  const LearningRateSchedule schedule{.base = 0.4,
                                      .curve = CosineDecay{4.0, 0.05},
                                      .with_learners = RateScaling::kKeep,
                                      .restarts = {{4.0, 3.25, 1.0}, {7.5, 2.0, 0.5}}};
  for (std::size_t i = 0; i < kEpochs.size(); ++i) {
    CAPTURE(kEpochs[i]);
    CHECK(schedule.at(kEpochs[i], 4) == Approx(kRates[i]).epsilon(1e-6));
  }
  CHECK(schedule.end()->epochs == 9.5);
  CHECK(schedule.end()->factor == 0.5 * 0.05);
  CHECK(schedule.drops_before(100.0) == 0);
  // From a restart on, the other schedules with an end are what they are from the start of a run.
  for (const char* name : {"polynomial", "one_cycle"}) {
    CAPTURE(name);
    const LearningRateSchedule first = schedule_of(name, false);
    LearningRateSchedule restarted = schedule_of(name, true);
    restarted.restarts = {{16.0, 8.0, 1.0}};
    CHECK(restarted.at(15.5, 1) == schedule_of(name, true).at(15.5, 1));
    for (const double epoch : kEpochs) CHECK(restarted.at(16.0 + epoch, 1) == first.at(epoch, 1));
  }
}

TEST_CASE("a limited learning rate keeps the shape of its schedule", "[scheduler]") {
  const LearningRateSchedule schedule{0.1, PolynomialDecay{4.0}, {1.0, 0.5}, RateScaling::kLinear, 0.2};
  CHECK(schedule.at(0.0, 2) == 0.1F);
  CHECK(schedule.at(1.0, 2) == 0.2F);
  for (const double progress : {0.0, 0.5, 1.0, 2.0, 4.5}) CHECK(schedule.at(progress, 8) == schedule.at(progress, 2));
}

TEST_CASE("a fixed learning rate is constant after its warm-up", "[scheduler]") {
  const LearningRateSchedule schedule{0.4, FixedRate{}, {2.0, 0.25}, RateScaling::kKeep};
  CHECK(schedule.at(0.0, 1) == 0.1F);
  CHECK(schedule.at(1.0, 1) == Approx(0.25));
  CHECK(schedule.at(2.0, 1) == 0.4F);
  CHECK(schedule.at(1e6, 1) == 0.4F);
}

TEST_CASE("base is the largest learning rate of any schedule, and no learning rate is negative", "[scheduler]") {
  for (const auto& [name, curve] : curves()) {
    CAPTURE(name);
    for (const bool is_warmed : {false, true}) {
      const LearningRateSchedule schedule = schedule_of(name, is_warmed);
      float largest = 0.0F;
      for (int i = 0; i <= 20 * 512; ++i) {
        const float rate = schedule.at(i / 512.0, 1);
        if (!(rate >= 0.0F && rate <= 0.4F)) FAIL("rate " << rate << " at epoch " << i / 512.0);
        largest = std::max(largest, rate);
      }
      CHECK(largest == Approx(0.4).epsilon(1e-4));
    }
  }
}

TEST_CASE("only the drops of step and multistep restart averaging", "[scheduler]") {
  for (const auto& [name, curve] : curves()) {
    CAPTURE(name);
    const bool drops = name == "step" || name == "multistep";
    CHECK((schedule_of(name, false).drops_before(100.0) > 0) == drops);
  }
  const LearningRateSchedule step = schedule_of("step", true);
  CHECK(step.drops_before(0.0) == 0);
  CHECK(step.drops_before(4.499) == 0);
  CHECK(step.drops_before(4.5) == 1);
  CHECK(step.drops_before(9.5) == 3);
  const LearningRateSchedule multistep = schedule_of("multistep", true);
  CHECK(multistep.drops_before(2.999) == 0);
  CHECK(multistep.drops_before(3.0) == 1);
  CHECK(multistep.drops_before(7.25) == 2);
}

TEST_CASE("learning rates follow the number of learners", "[scheduler]") {
  LearningRateSchedule schedule{.base = 0.1, .curve = CosineDecay{.epochs = 4.0}};
  for (const double progress : {0.0, 1.5}) {
    schedule.with_learners = RateScaling::kKeep;
    const float one = schedule.at(progress, 4);
    CHECK(schedule.at(progress, 1) == one);
    schedule.with_learners = RateScaling::kSqrt;
    CHECK(schedule.at(progress, 4) == Approx(2.0F * one));
    CHECK(schedule.at(progress, 1) == one);
    schedule.with_learners = RateScaling::kLinear;
    CHECK(schedule.at(progress, 4) == Approx(4.0F * one));
  }
}

}  // namespace arbalest::scheduler
