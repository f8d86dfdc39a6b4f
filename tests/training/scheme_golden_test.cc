// Compares training with three learners with recorded trajectories. tests/goldens/schemes.txt has one line per scheme
// and round: name, round, and the parameters of the model. The scalar reference (tests/support/reference_scheme.h)
// computed them. `training_test "write the recorded trajectories"` regenerates the file.
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "tests/support/catch.h"
#include "tests/support/scheme_rig.h"
#include "tests/support/source_directory.h"

namespace {

using namespace arbalest;
using tests::SchemeCase;
using tests::SchemeRig;

constexpr int kRounds = 6;
constexpr int kSteps = 2;  // of each learner, per round

std::string path() { return tests::source_directory() + "/tests/goldens/schemes.txt"; }

std::vector<SchemeCase> schemes() {
  std::vector<SchemeCase> schemes = {tests::sma_case(),
                                     tests::ea_sgd_case(),
                                     tests::local_sgd_case(),
                                     tests::bmuf_case(false),
                                     tests::slow_mo_with_momentum(),
                                     tests::diloco_case(),
                                     tests::lookahead_case(),
                                     tests::swap_case(),
                                     tests::s_sgd_case()};
  for (SchemeCase& scheme : schemes) {
    scheme = scheme.with_period(kSteps);
    scheme.name = sma::name_of(scheme.options.scheme);
  }
  return schemes;
}

// Two pixels and two classes make six parameters. The learning rate drops after three rounds.
tests::RigOptions tiny_options() {
  tests::RigOptions options = tests::scheme_options({3});
  options.image = {1, 1, 2};
  options.classes = 2;
  options.learning_rate.base = 0.2;
  options.learning_rate.curve = scheduler::MultistepDrops{{{0.75, 0.5}}};
  return options;
}

// Calls look(name, round, rig) after each round.
template <typename Look>
void for_each_round(const Look& look) {
  for (const SchemeCase& scheme : schemes()) {
    SchemeRig rig(tiny_options(), scheme);
    for (int round = 1; round <= kRounds; ++round) {
      rig.run(kSteps / scheme.options.steps_per_iteration());
      look(scheme.name, round, rig);
    }
  }
}

}  // namespace

TEST_CASE("three learners follow the recorded trajectory of every scheme", "[scheme][golden]") {
  std::ifstream file(path());
  REQUIRE(file.good());
  int lines = 0;
  for_each_round([&](const std::string& name, int round, SchemeRig& rig) {
    CAPTURE(name, round);
    std::string line;
    std::getline(file, line);
    std::istringstream words(line);
    std::string recorded_name;
    int recorded_round = 0;
    words >> recorded_name >> recorded_round;
    REQUIRE(recorded_name == name);
    REQUIRE(recorded_round == round);
    std::vector<double> recorded;
    for (double value = 0.0; words >> value;) recorded.push_back(value);
    const std::vector<double> found = tests::flatten(rig.rig().scheduler().snapshot());
    REQUIRE(recorded.size() == found.size());
    CHECK(tests::relative_distance(found, recorded) < 1e-5);
    CHECK(tests::relative_distance(rig.reference().model(), recorded) < 1e-7);
    ++lines;
  });
  CHECK(lines == 9 * kRounds);
  std::string rest;
  CHECK_FALSE(std::getline(file, rest));
}

TEST_CASE("write the recorded trajectories", "[.]") {
  std::ofstream file(path());
  for_each_round([&](const std::string& name, int round, SchemeRig& rig) {
    file << name << ' ' << round;
    for (const double value : rig.reference().model()) file << fmt::format(" {:.9g}", value);
    file << '\n';
  });
  REQUIRE(file.good());
}
