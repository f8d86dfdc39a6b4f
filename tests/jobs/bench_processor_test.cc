// What a bench says about the processor time of its runs.
#include "study/bench/bench_processor.h"

#include <unistd.h>

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "study/bench/bench_page.h"
#include "study/bench/bench_report.h"
#include "study/bench/bench_tables.h"
#include "study/child_process.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::jobs {
namespace {

// A run of 1,000 images in 10 seconds.
BenchRun run_with(std::uint64_t seed, const std::optional<BenchProcessor>& processor) {
  BenchRun run;
  run.seed = seed;
  run.outcome = BenchOutcome::kCompleted;
  run.directory = "1-job/seed-" + std::to_string(seed);
  run.learners = 2;
  run.epochs = 1;
  run.images_per_second = 100.0;
  run.test_accuracy = 0.9;
  run.phases.training = 10.0;
  run.processor = processor;
  return run;
}

BenchResult result_of(const std::vector<BenchRun>& runs) {
  BenchResult result;
  BenchCase& of = result.plan.cases.emplace_back();
  of.job = of.label = of.name = of.series_name = "job";
  for (const BenchRun& run : runs) result.plan.seeds.push_back(run.seed);
  result.machine = {{"cores", 2}};
  result.runs = runs;
  return result;
}

}  // namespace

TEST_CASE("bench processor time: a disturbed run is named beside the tables, with processor time per image") {
  // 20 processor seconds for 1,000 images; the second run lost 10 of 25.
  const BenchResult busy = result_of({run_with(1, BenchProcessor{12.0, 20.0, 0.4}),
                                      run_with(2, BenchProcessor{12.0, 15.0, 10.0}), run_with(3, std::nullopt)});
  const std::string note =
      "THE MACHINE WAS BUSY: other programs took more than 5 % of the processor time that 1 of 3 runs wanted, up to "
      "40 %.";
  for (const std::string& text : {to_text(busy), to_page(busy), to_markdown(busy)}) {
    CHECK_THAT(text, ContainsSubstring(note));
  }
  const TableRows rows = run_rows(busy);
  CHECK(rows[0] == std::vector<std::string>{"job", "seed", "outcome", "epochs", "test accuracy", "images/s",
                                            "processor time lost", "processor us/image", "learners", "log"});
  CHECK(rows[1][6] == "2.0 %");
  CHECK(rows[1][7] == "20,000");
  CHECK(rows[2][6] == "40.0 %");
  CHECK(rows[2][7] == "15,000");
  CHECK(rows[3][6] == "-");
  const auto json = to_json(busy);
  CHECK(json["disturbed_runs"] == 1);
  const auto& runs = json["cases"][0]["runs"];
  CHECK(runs[1]["processor"]["lost_share"] == Approx(0.4));
  CHECK(runs[1]["processor_seconds_per_image"] == Approx(0.015));
  CHECK(runs[2]["processor"].is_null());
  CHECK(processor_from(runs[1]["processor"])->lost == 10.0);
  CHECK_FALSE(processor_from(runs[2]["processor"]).has_value());

  const BenchResult quiet = result_of({run_with(1, BenchProcessor{12.0, 20.0, 0.4})});
  CHECK_THAT(to_text(quiet), !ContainsSubstring("BUSY"));
  CHECK(to_json(quiet)["disturbed_runs"] == 0);
  CHECK(run_rows(result_of({run_with(1, std::nullopt)}))[0].size() == 8);
}

TEST_CASE("bench processor time: a real process is measured from outside to its end") {
  const tests::TemporaryDirectory directory;
  const std::atomic<int> no_signal{0};
  ProcessorWatch watch;
  const ChildEnd end = run_child({.program = "/bin/sh",
                                  .arguments = {"sh", "-c", "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done"},
                                  .environment = environ,
                                  .log = directory / "log",
                                  .watch = [&](pid_t process) { watch.look(process); }},
                                 no_signal);
  CHECK(end.exit_code == 0);
  CHECK(end.processor_seconds > 0.0);
  if (const auto whole = watch.whole(end.processor_seconds)) {  // none if it took less than a quarter of a second
    CHECK(whole->used == end.processor_seconds);
    CHECK(whole->lost >= 0.0);
    CHECK(whole->seconds > 0.0);
  }
  CHECK_FALSE(ProcessorWatch().whole(1.0).has_value());
}

}  // namespace arbalest::jobs
