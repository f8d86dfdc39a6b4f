// Runs whose job has precision AUTO: what they choose, and that they keep it.
#include <algorithm>
#include <string>
#include <vector>

#include "engine/backends/devices.h"
#include "options/loading/evaluation_job.h"
#include "options/throughput_key.h"
#include "saved_model/run_files.h"
#include "tests/process/ranks.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/watched_run.h"
#include "train/inspection.h"
#include "train/session/precision_trial.h"
#include "train/session/settled_precision.h"

namespace arbalest::tests {
namespace {

using engine::Precision;
using engine::process::World;
using jobs::JobOptions;

const std::vector<std::string> kRecent = {"avx2", "avx512f", "avx512_bf16"};
const std::vector<std::string> kOld = {"avx2", "avx512f"};

JobOptions job_in(const std::string& precision, int max_epochs = 1) {
  return short_job("logistic-digits.txtpb",
                   {"training.precision=" + precision, "training.max_epochs=" + std::to_string(max_epochs)});
}

// It takes two cores.
JobOptions split_job() {
  const std::vector<int> cores = engine::host::allowed_cores();
  if (cores.size() < 2) skip_test("a split model takes two cores");
  const std::string devices = fmt::format(R"(devices=["cpu:{}", "cpu:{}"])", cores[0], cores[1]);
  return jobs::parse_job(jobs::SourceText("split", R"(model {
    layers { name: "hidden" input: "image" dense { units: 30 split: COLUMNS } }
    layers { name: "relu" input: "hidden" relu {} }
    layers { name: "logits" input: "relu" dense { units: 10 split: ROWS } }
    layers { name: "loss" input: ["logits", "label"] softmax_cross_entropy {} } }
    data { digits {} } learning_rate { base: 0.01 } synchronization { s_sgd {} } training { precision: AUTO }
    learners { per_device { fixed: 1 } })"),
                         std::vector{devices});
}

void need_bfloat16() {
  const std::string problem = engine::precision_problem(engine::parse_device("cpu"), Precision::kBFloat16);
  if (!problem.empty()) skip_test(problem);
}

}  // namespace

TEST_CASE("AUTO is BF16 if a step in FP32 takes at least a tenth longer", "[training]") {
  const auto chosen = [](double float32, double precision) {
    return jobs::faster_precision("cpu", {.float32 = float32, .precision = precision});
  };
  CHECK(chosen(1.0, 1.0).precision == Precision::kFloat32);
  CHECK(chosen(1.0, 2.0).precision == Precision::kFloat32);
  CHECK(chosen(1.09, 1.0).precision == Precision::kFloat32);
  CHECK(chosen(1.11, 1.0).precision == Precision::kBFloat16);
  CHECK(chosen(3.0, 1.0).precision == Precision::kBFloat16);
  CHECK(chosen(3e-3, 2e-3).text ==
        "AUTO took BF16: on cpu a step of one mini-batch takes 3 ms in FP32 and 2 ms in BF16, a ratio of 1.50 (BF16 "
        "from 1.1 on)");
  CHECK(chosen(2e-3, 4e-3).text ==
        "AUTO took FP32: on cpu a step of one mini-batch takes 2 ms in FP32 and 4 ms in BF16, a ratio of 0.50 (BF16 "
        "from 1.1 on)");
}

TEST_CASE("AUTO is FP32 without a trial if a device has no BF16, or the model is split", "[training]") {
  JobOptions job = job_in("AUTO");
  CHECK(jobs::obstacle_to_bfloat16(job, kRecent).empty());
  CHECK(jobs::obstacle_to_bfloat16(job, kOld) == "'cpu' has no BF16");
  job.devices = {{"cuda:0", {}, 0}, {"cuda:1", {}, 1}};
  CHECK(jobs::obstacle_to_bfloat16(job, kOld).empty());
  job.devices[1] = {"cpu:3", {3}, -1};
  CHECK(jobs::obstacle_to_bfloat16(job, kOld) == "'cpu:3' has no BF16");
  CHECK(jobs::obstacle_to_bfloat16(split_job(), kRecent) == "devices of a split model send float32 only");
  CHECK(jobs::float32_because("'cpu' has no BF16").precision == Precision::kFloat32);
  CHECK(jobs::float32_because("'cpu' has no BF16").text == "AUTO took FP32: 'cpu' has no BF16");
}

TEST_CASE("a run with AUTO is, in all its files, a run that names the precision", "[training]") {
  const TemporaryDirectory output;
  const Part part = train_part(job_in("AUTO"), output.path());
  const JobOptions saved = jobs::load_job((output.path() / jobs::kJobFile).string());
  CHECK_FALSE(saved.training.chooses_precision);
  CHECK(saved.training.precision == part.summary.precision);
  CHECK((part.summary.precision == Precision::kFloat32 || part.summary.precision == Precision::kBFloat16));

  const TemporaryDirectory named;
  CHECK(train_part(saved, named.path()).summary.model_sha256 == part.summary.model_sha256);

  const std::string model = (output.path() / jobs::kModelFile).string();
  const JobOptions again = jobs::load_for_evaluation((output.path() / jobs::kJobFile).string(), {});
  CHECK(again.warnings.empty());
  CHECK(jobs::evaluate_run(again, model, part.summary.model_sha256, {}).scores.value("accuracy") ==
        part.summary.test.value("accuracy"));
}

TEST_CASE("a resumed run whose job says AUTO keeps the precision of its checkpoint", "[training][checkpoint]") {
  for (const std::string precision : {"FP32", "BF16"}) {
    CAPTURE(precision);
    if (precision == "BF16") need_bfloat16();
    const TemporaryDirectory whole;
    const Part expected = train_part(job_in(precision, 2), whole.path());
    const TemporaryDirectory output;
    train_part(job_in(precision, 1), output.path());
    const Part part = train_part(job_in("AUTO", 2), output.path());
    REQUIRE(part.resumed);
    CHECK(to_string(part.summary.precision) == precision);
    CHECK(part.summary.model_sha256 == expected.summary.model_sha256);
  }
}

TEST_CASE("a dry run with AUTO says what it chose, and trains", "[training]") {
  const jobs::DryRun done = jobs::dry_run(job_in("AUTO"), {});
  CHECK_THAT(done.text, ContainsSubstring("trained") && ContainsSubstring("; precision AUTO took "));
  CHECK_THAT(jobs::dry_run(job_in("FP32"), {}).text, !ContainsSubstring("precision"));
}

TEST_CASE("an inspection of a job with AUTO is about FP32, and says so", "[training]") {
  const auto says = [](const jobs::Inspection& inspection) {
    return std::ranges::count_if(inspection.warnings,
                                 [](const std::string& text) { return text.find("AUTO") != std::string::npos; });
  };
  const jobs::Inspection inspection = jobs::inspect(job_in("AUTO"));
  CHECK(inspection.precision == Precision::kFloat32);
  CHECK(says(inspection) == 1);
  CHECK(says(jobs::inspect(job_in("FP32"))) == 0);
}

TEST_CASE("a job with a settled precision names it wherever its speed is remembered", "[training]") {
  std::vector<std::string> notes;
  const auto note = [&](const std::string& line) { notes.push_back(line); };
  const JobOptions job = jobs::with_settled_precision(job_in("AUTO"), {}, note);
  REQUIRE(notes.size() == 1);
  CHECK_THAT(notes[0], ContainsSubstring(std::string("precision AUTO took ") + to_string(job.training.precision)));
  CHECK(jobs::throughput_key(job) == jobs::throughput_key(job_in(to_string(job.training.precision))));

  const JobOptions named = job_in("FP32");
  CHECK(jobs::with_settled_precision(named, {}, note).resolved_text == named.resolved_text);
  CHECK(notes.size() == 1);
}

TEST_CASE("all processes of a run get the precision that rank 0 chooses", "[training]") {
  std::vector<JobOptions> settled(2);
  std::vector<std::string> texts(2);
  on_each_rank(2, [&](World& world) {
    const auto rank = static_cast<std::size_t>(world.rank());
    JobOptions job = job_in("AUTO");
    if (rank == 1) job.training.batch_size = 0;  // a trial would fail
    texts[rank] = jobs::settle_precision(job, {}, world).text;
    settled[rank] = std::move(job);
  });
  CHECK_THAT(texts[0], ContainsSubstring(to_string(settled[0].training.precision)));
  CHECK(settled[0].training.precision == settled[1].training.precision);
  CHECK(settled[0].resolved_text == settled[1].resolved_text);
  for (const JobOptions& job : settled) CHECK_FALSE(job.training.chooses_precision);
}

TEST_CASE("a process whose devices have no BF16 makes all of them take FP32", "[training]") {
  need_bfloat16();
  const JobOptions split = split_job();
  std::vector<Precision> precisions(2);
  std::string text;
  on_each_rank(2, [&](World& world) {
    JobOptions job = world.rank() == 0 ? job_in("AUTO") : split;
    if (world.rank() == 0) job.training.batch_size = 0;  // a trial would fail
    const jobs::SettledPrecision found = jobs::settle_precision(job, {}, world);
    if (world.rank() == 0) text = found.text;
    precisions[static_cast<std::size_t>(world.rank())] = job.training.precision;
  });
  CHECK(precisions == std::vector{Precision::kFloat32, Precision::kFloat32});
  CHECK_THAT(text, ContainsSubstring("rank 1") && ContainsSubstring("split model"));
}

}  // namespace arbalest::tests
