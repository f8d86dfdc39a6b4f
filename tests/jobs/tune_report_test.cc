// Output of `arbalest tune`: text, JSON and chart.
#include <algorithm>
#include <string>
#include <vector>

#include "study/tune_report.h"
#include "tests/support/catch.h"

namespace arbalest::jobs {
namespace {

TunePoint point_at(std::vector<int> learners, double rate) {
  return {.learners = std::move(learners), .threads = {2, 1}, .images_per_second = rate, .learner_bytes = 1 << 20};
}

// A result for one device with three cores and one with a single core, with different numbers of learners.
TuneResult unlike() {
  return {.job = "lenet",
          .devices = {"cpu:0-2", "cpu:3"},
          .batch_size = 32,
          .precision = "float32",
          .chosen = {3, 6},
          .reason = "why",
          .points = {point_at({3, 3}, 100.0), point_at({3, 6}, 150.0)},
          .sweep = {}};
}

}  // namespace

TEST_CASE("tune report: numbers that differ between devices are listed by device") {
  TuneResult result = unlike();
  CHECK_THAT(to_text(result), ContainsSubstring("3 learners on cpu:0-2, 6 learners on cpu:3: why") &&
                                  ContainsSubstring("3, 6") && !ContainsSubstring("on each device"));
  const auto json = to_json(result);
  CHECK(json["chosen"] == std::vector<int>{3, 6});
  CHECK(json["points"][0]["learners"] == 3);
  CHECK(json["points"][1]["learners"] == std::vector<int>{3, 6});
  CHECK(json["points"][1]["threads"] == std::vector<int>{2, 1});
  CHECK_THAT(to_svg(result), ContainsSubstring("examples/s over learners of all devices") &&
                                 ContainsSubstring("chosen: 3 learners on cpu:0-2, 6 learners on cpu:3"));

  result.chosen = {6, 6};
  result.points.back().learners = {6, 6};
  CHECK_THAT(to_text(result), ContainsSubstring("6 learners on each device: why"));
  CHECK(to_json(result)["points"][1]["learners"] == 6);
  CHECK_THAT(to_svg(result), ContainsSubstring("examples/s over learners per device"));
}

TEST_CASE("tune report: for goodput, every number of learners has throughput, efficiency and goodput") {
  TuneResult result = unlike();
  const std::string by_throughput = to_text(result);
  CHECK_THAT(by_throughput, !ContainsSubstring("efficiency") && !ContainsSubstring("goodput"));
  CHECK(to_json(result)["objective"] == "throughput");
  CHECK(to_json(result)["points"][0]["efficiency"].is_null());
  CHECK(to_json(result)["points"][0]["goodput"].is_null());

  result.objective = TuningObjective::kGoodput;
  CHECK_THAT(to_text(result), ContainsSubstring("unknown") && !ContainsSubstring("noise scale"));

  result.noise_scale = 128.0;
  result.points[0].efficiency = 0.75;
  result.points[1].efficiency = 0.4;
  result.sweep = result.points;
  result.regret = regret_of(result);
  CHECK(*result.regret == Approx(1.0 - 150.0 * 0.4 / 75.0));
  CHECK_THAT(to_text(result),
             ContainsSubstring("efficiency") && ContainsSubstring("0.75") && ContainsSubstring(" 75 ") &&
                 ContainsSubstring("gradient noise scale: 128 examples") &&
                 ContainsSubstring("20.0 % less goodput than the best of the sweep") && !ContainsSubstring("unknown"));
  CHECK_THAT(to_text(result), !ContainsSubstring("too large"));
  result.synchronization = "sma";
  CHECK_THAT(to_text(result), ContainsSubstring("under sma it comes out too large"));
  const auto json = to_json(result);
  CHECK(json["objective"] == "goodput");
  CHECK(json["synchronization"] == "sma");
  CHECK(json["noise_scale"] == 128.0);
  CHECK(json["points"][1]["efficiency"] == 0.4);
  CHECK(json["points"][1]["goodput"].get<double>() == Approx(60.0));
}

TEST_CASE("tune report: the regret is for the chosen numbers, which are marked once") {
  TuneResult result = unlike();
  CHECK_FALSE(regret_of(result).has_value());
  result.sweep = {point_at({1, 1}, 80.0), point_at({3, 3}, 200.0), point_at({3, 6}, 150.0), point_at({6, 6}, 120.0)};
  CHECK(*regret_of(result) == Approx(0.25));
  result.regret = regret_of(result);
  const std::string text = to_text(result);
  CHECK_THAT(text, ContainsSubstring("25.0 % slower than the best of the sweep"));
  CHECK(text.find("chosen") == text.rfind("chosen"));
  // The curve has the three points with equal numbers. The chosen numbers are a dot beside the curve.
  const std::string svg = to_svg(result);
  CHECK(svg.find(" marked\"") == svg.rfind(" marked\""));
  const std::size_t curve = svg.find("<path class=\"curve");
  CHECK(std::ranges::count(svg.substr(curve, svg.find("/>", curve) - curve), 'L') == 2);
}

}  // namespace arbalest::jobs
