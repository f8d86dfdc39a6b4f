// Whole runs that leave out images that cannot be read: what counts as too many in a resumed run and over processes.
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/host/topology.h"
#include "tests/process/ranks.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/small_datasets.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/watched_run.h"
#include "train/processes/shared_job.h"

namespace arbalest::tests {

namespace {

constexpr int kTraining = 120;  // images; an epoch has 30 mini-batches of them

// Writes the training set, of which the first `damaged` images cannot be read, and a test set.
void write_set(const std::filesystem::path& root, int damaged) {
  write_folder(root / "set/train", kTraining);
  write_folder(root / "set/test");
  for (int i = 0; i < damaged; ++i) {
    write_text(root / fmt::format("set/train/class{}/{:02}.png", i % 3, i), "no image");
  }
}

// The random crop keeps images from being decoded once for all epochs.
std::string job_over(const std::filesystem::path& root, double max_skipped) {
  return fmt::format(
      "name: 'gaps' model {{ zoo {{ logistic_regression {{}} }} }}\n"
      "data {{ images {{ directory: '{}' classes: 3 decoding {{ height: 8 width: 8 resize: 9 on_unreadable: SKIP "
      "max_skipped: {} }} }} augmentation {{ random_resized_crop {{}} }} }}\n"
      "training {{ batch_size: 4 max_epochs: 1 }} learning_rate {{ base: 0.01 fixed {{}} }}\n"
      "learners {{ per_device {{ fixed: 1 }} }} checkpoint {{ every_epochs: 1 }}",
      (root / "set").string(), max_skipped);
}

jobs::JobOptions parsed(const std::filesystem::path& root, double max_skipped) {
  return jobs::parse_job(jobs::SourceText("gaps", job_over(root, max_skipped)),
                         std::vector<std::string>{"devices=cpu"});
}

// Returns what each of two processes has thrown, or "".
std::vector<std::string> over_two_processes(const std::filesystem::path& root, double max_skipped) {
  const std::vector<int> cores = engine::host::allowed_cores();
  if (cores.size() < 2) skip_test("needs two cores");
  const std::vector<std::string> settings = {fmt::format("devices=[\"cpu:{}\", \"cpu:{}\"]", cores[0], cores[1])};
  const std::string path = (root / "job.txtpb").string();
  write_text(path, job_over(root, max_skipped));
  return messages_of_ranks(2, [&](engine::process::World& world) {
    const jobs::JobOptions own = jobs::load_shared_job(world, path, settings);
    jobs::RunContext context;
    context.world = &world;
    jobs::train(own, context);
  });
}

}  // namespace

TEST_CASE("a resumed run counts the images that its epoch has gone without before", "[training]") {
  const TemporaryDirectory root;
  write_set(root.path(), 16);
  const jobs::JobOptions job = parsed(root.path(), 0.1);  // 12 of 120
  const std::filesystem::path output = root / "run";
  double epochs = 0.0;
  while (epochs < 0.5) {
    const Part part = train_part(job, output, 20);
    REQUIRE(part.summary.status == jobs::RunStatus::kStopped);
    REQUIRE(part.summary.epochs_begun > epochs);
    epochs = part.summary.epochs_begun;
    REQUIRE(part.summary.skipped_examples <= 12);
    INFO(epochs << " epochs without " << part.summary.skipped_examples);
  }
  // The rest alone has fewer than 12.
  CHECK_THROWS_WITH(train_part(job, output),
                    ContainsSubstring("of 120 images cannot be read, but max_skipped: 0.1 allows 12") &&
                        ContainsSubstring("set/train/class"));
}

TEST_CASE("the images that two processes leave out count together, and both end with the same error",
          "[training][processes]") {
  const TemporaryDirectory root;
  write_set(root.path(), 3);
  for (const std::string& message : over_two_processes(root.path(), 0.025)) CHECK(message.empty());
  const std::vector<std::string> messages = over_two_processes(root.path(), 0.02);
  CHECK_THAT(messages[0], ContainsSubstring("3 of 120 images cannot be read, but max_skipped: 0.02 allows 2"));
  for (int i = 0; i < 3; ++i) CHECK_THAT(messages[0], ContainsSubstring(fmt::format("class{}/{:02}.png", i, i)));
  CHECK(messages[1] == messages[0]);
}

}  // namespace arbalest::tests
