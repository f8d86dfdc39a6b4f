// Schemes without rounds report staleness in place of the distances between replicas.
#include <string>

#include "report/json.h"
#include "tests/jobs/captured_console.h"
#include "tests/jobs/reported_run.h"
#include "tests/support/catch.h"

namespace arbalest::jobs {

using nlohmann::ordered_json;

TEST_CASE("report: asynchronous epochs and runs have the pushes by staleness") {
  EpochRow row = some_row();
  row.staleness = {{0, 12}, {3, 5}, {10, 1}};
  CHECK(to_json(row)["staleness"].dump() == R"({"0":12,"3":5,"10":1})");
  RunSummary summary = some_summary();
  CHECK_FALSE(to_json(summary).contains("staleness"));
  summary.staleness = row.staleness;
  CHECK(to_json(summary)["staleness"].dump() == R"({"0":12,"3":5,"10":1})");
  for (const ordered_json& json : {to_json(row), to_json(summary)}) {
    CHECK(json["staleness_mean"].get<double>() == 25.0 / 18.0);
    CHECK(json["staleness_max"] == 10);
  }
  CHECK_FALSE(to_json(some_row()).contains("staleness_mean"));
}

TEST_CASE("report: a distance of replicas that nothing measures is left out") {
  EpochRow row = some_row();
  row.replica_distance.reset();
  row.replica_spread.reset();
  CHECK_FALSE(to_json(row).contains("replica_distance"));
  CHECK_FALSE(to_json(row).contains("replica_spread"));
}

TEST_CASE("console: asynchronous epochs and runs show their staleness") {
  Console console;
  console.reporter.on_start(some_start());
  EpochRow row;
  console.reporter.on_epoch(row);
  CHECK_THAT(console.messages.text(), !ContainsSubstring("staleness"));
  row.staleness = {{0, 3}, {2, 1}};
  console.reporter.on_epoch(row);
  CHECK_THAT(console.messages.text(), ContainsSubstring("  staleness: mean 0.50, largest 2\n"));
  RunSummary summary = some_summary();
  summary.staleness = {{1, 3}, {5, 1}};
  console.reporter.on_finish(summary);
  CHECK_THAT(console.results.text(), ContainsSubstring("mean 2.00, largest 5\n"));
}

}  // namespace arbalest::jobs
