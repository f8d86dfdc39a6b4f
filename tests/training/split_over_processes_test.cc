// Whole runs of models that are split over the devices of several processes, through jobs::train. The worlds are in
// threads of this process.
#include <string>
#include <vector>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/host/topology.h"
#include "saved_model/safetensors.h"
#include "tests/process/ranks.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/source_directory.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/watched_run.h"
#include "train/processes/shared_job.h"
#include "train/train.h"

namespace arbalest::tests {

namespace {

// A job on two devices, or on "cpu", whose cores are divided among the processes.
std::string split_job(int units, const std::string& learners = "per_device { fixed: 1 }",
                      const std::string& scheme = "s_sgd {}") {
  return fmt::format(
      "model {{ "
      "layers {{ name: 'conv' input: 'image' conv {{ filters: 4 kernel: 5 }} }} "
      "layers {{ name: 'pool' input: 'conv' max_pool {{ kernel: 4 stride: 4 }} }} "
      "layers {{ name: 'hidden' input: 'pool' dense {{ units: {} split: COLUMNS }} }} "
      "layers {{ name: 'relu' input: 'hidden' relu {{}} }} "
      "layers {{ name: 'logits' input: 'relu' dense {{ units: 10 split: ROWS }} }} "
      "layers {{ name: 'loss' input: 'logits' input: 'label' softmax_cross_entropy {{}} }} }} "
      "data {{ digits {{}} }} training {{ batch_size: 100 max_epochs: 1 }} "
      "optimizer {{ sgd {{ momentum: 0.9 }} }} learning_rate {{ base: 0.02 with_learners: KEEP }} "
      "synchronization {{ {} }} learners {{ {} }}",
      units, scheme, learners);
}

std::string devices() {
  const std::vector<int> cores = engine::host::allowed_cores();
  if (cores.size() < 2) skip_test("needs two cores");
  return fmt::format("devices=[\"cpu:{}\", \"cpu:{}\"]", cores[0], cores[1]);
}

std::string write_job(const TemporaryDirectory& directory, const std::string& text) {
  const std::string path = (directory.path() / "job.txtpb").string();
  write_text(path, text);
  return path;
}

// Returns each rank's error for the job; "" if the rank may train.
std::vector<std::string> refusals(const std::string& text, int ranks, const std::vector<std::string>& settings) {
  const TemporaryDirectory directory;
  const std::string path = write_job(directory, text);
  return messages_of_ranks(ranks, [&](engine::process::World& world) { jobs::load_shared_job(world, path, settings); });
}

}  // namespace

TEST_CASE("a run that is split over two processes saves the model of one process", "[split]") {
  const std::string text = split_job(20);
  const std::vector<std::string> settings = {devices()};
  const jobs::JobOptions job = jobs::parse_job(jobs::SourceText("job.txtpb", text), settings);
  const TemporaryDirectory in_one;
  const jobs::RunSummary expected = run(job, in_one.path());

  const TemporaryDirectory in_two;
  const std::string path = write_job(in_two, text);
  std::filesystem::create_directory(in_two.path() / "run");
  std::vector<jobs::RunSummary> summaries(2);
  on_each_rank(2, [&](engine::process::World& world) {
    const jobs::JobOptions own = jobs::load_shared_job(world, path, settings);
    expect(own.devices.size() == 1, "each process has one device");
    jobs::RunContext context;
    context.world = &world;
    context.output_directory = in_two.path() / "run";
    summaries[static_cast<std::size_t>(world.rank())] = jobs::train(own, context);
  });
  CHECK(summaries[0].status == jobs::RunStatus::kCompleted);
  CHECK(summaries[0].model_sha256 == expected.model_sha256);
  CHECK(summaries[0].test.value("accuracy") == expected.test.value("accuracy"));
  const auto file = jobs::read_safetensors(in_two.path() / "run" / jobs::kModelFile);
  const auto unsplit = jobs::read_safetensors(in_one.path() / jobs::kModelFile);
  REQUIRE(file.size() == unsplit.size());
  for (std::size_t i = 0; i < file.size(); ++i) CHECK(file[i].shape == unsplit[i].shape);
  const std::string model = (in_two.path() / "run" / jobs::kModelFile).string();
  const std::vector<std::string> one_device = {"devices=[\"cpu\"]"};
  const jobs::EvaluationResult alone = jobs::evaluate_run(
      jobs::parse_job(jobs::SourceText("job.txtpb", text), one_device), model, summaries[0].model_sha256, {});
  CHECK(alone.scores.value("accuracy").value() ==
        Approx(expected.test.value("accuracy").value()).margin(5e-4));  // sums in another order
}

TEST_CASE("split jobs that several processes cannot divide are refused by all", "[split]") {
  const std::string cpu = "devices=\"cpu\"";
  CHECK(refusals(split_job(20), 2, {cpu}) == std::vector<std::string>(2));
  for (const std::string& text : refusals(split_job(21), 2, {cpu})) {
    CHECK_THAT(
        text, ContainsSubstring("job.txtpb:1:") &&
                  ContainsSubstring("layer 'hidden': split: COLUMNS cannot divide 21 units equally over 2 devices of 2 "
                                    "processes; change the number") &&
                  ContainsSubstring("layer 'logits': split: ROWS cannot divide 21 inputs equally over 2 devices"));
  }
  // All mistakes of the job are told at once.
  for (const std::string& text : refusals(split_job(21), 2, {cpu, "training.max_epochs=0"})) {
    CHECK_THAT(text, ContainsSubstring("error: layer 'hidden': split: COLUMNS cannot divide 21 units equally") &&
                         ContainsSubstring("error: layer 'logits'") && ContainsSubstring("max_epochs must be in"));
  }
  // Named devices are divided among the processes of a host.
  for (const std::string& text : refusals(split_job(21), 2, {devices()})) {
    CHECK_THAT(text, ContainsSubstring("job.txtpb:1:") && ContainsSubstring("over 2 devices of 2 processes"));
  }
  for (const std::string& text : refusals(split_job(20, "per_device { fixed: 2 }"), 2, {cpu})) {
    CHECK_THAT(text, ContainsSubstring("split: COLUMNS excludes learners.per_device of 2"));
  }
  for (const std::string& text : refusals(split_job(20, "per_device { fixed: 1 }", "local_sgd {}"), 2, {cpu})) {
    CHECK_THAT(text, ContainsSubstring("split: COLUMNS excludes synchronization.local_sgd"));
  }
}

}  // namespace arbalest::tests
