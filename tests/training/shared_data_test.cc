// Processes whose data differ in one example.
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/host/topology.h"
#include "tests/process/ranks.h"
#include "tests/support/catch.h"
#include "tests/support/image_writer.h"
#include "tests/support/skip.h"
#include "tests/support/small_datasets.h"
#include "tests/support/temporary_directory.h"
#include "train/processes/shared_job.h"
#include "train/train.h"

namespace arbalest::tests {
namespace {

constexpr int kTraining = 240;  // images
constexpr int kTest = 3000;     // images

// The random crop keeps images from being decoded before training.
constexpr const char* kStreamed = "augmentation { random_resized_crop {} }";

// Trains in two processes, whose data are in these folders. Returns what each has thrown, or "".
std::vector<std::string> train_over(const std::vector<std::filesystem::path>& roots, const std::string& augmentation,
                                    int epochs) {
  const std::vector<int> cores = engine::host::allowed_cores();
  if (cores.size() < 2) skip_test("needs two cores");
  const std::vector<std::string> settings = {fmt::format("devices=[\"cpu:{}\", \"cpu:{}\"]", cores[0], cores[1])};
  const std::string path = (roots.front() / "job.txtpb").string();
  write_text(path, fmt::format("name: 'shared' model {{ zoo {{ logistic_regression {{}} }} }}\n"
                               "data {{ images {{ directory: 'set' classes: 3 decoding {{ height: 8 width: 8 resize: 9 "
                               "on_unreadable: SKIP max_skipped: 0.5 }} }} {} }}\n"
                               "training {{ batch_size: 4 max_epochs: {} }} learning_rate {{ base: 0.01 }}\n"
                               "learners {{ per_device {{ fixed: 1 }} }}",
                               augmentation, epochs));
  return messages_of_ranks(2, [&](engine::process::World& world) {
    const jobs::JobOptions own = jobs::load_shared_job(world, path, settings);
    jobs::RunContext context;
    context.world = &world;
    context.data_root = roots[static_cast<std::size_t>(world.rank())].string();
    jobs::train(own, context);
  });
}

// Two folders with the same data.
struct TwoFolders {
  TwoFolders() {
    write_folder(here.path() / "set/train", kTraining);
    write_folder(here.path() / "set/test");
    copy();
  }
  void copy() {
    std::filesystem::copy(here.path() / "set", there.path() / "set",
                          std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing);
  }
  std::vector<std::filesystem::path> roots() const { return {here.path(), there.path()}; }

  TemporaryDirectory here, there;
};

// The 80th of 240 training images. The comparison before training reads every 3.75th of them.
const std::filesystem::path kOther = "set/train/class1/01.png";

TEST_CASE("shared data: an image that is another one elsewhere is found when the second process has read it",
          "[training][processes]") {
  const TwoFolders folders;
  for (const std::string& message : train_over(folders.roots(), kStreamed, 2)) CHECK(message.empty());
  REQUIRE(std::filesystem::exists(folders.there.path() / kOther));
  write_text(folders.there.path() / kOther, png(gradient(12, 10, 3, 977)));
  const std::vector<std::string> messages = train_over(folders.roots(), kStreamed, 20);
  CHECK_THAT(messages[0],
             ContainsSubstring("class1/01.png: rank ") && ContainsSubstring(" has read other bytes there than rank "));
  CHECK(messages[1] == messages[0]);
}

TEST_CASE("shared data: a test image that is another one elsewhere is found when the second process has read it",
          "[training][processes]") {
  TwoFolders folders;
  // More than the comparison before training and the rings read; one that is damaged keeps them from being decoded
  // ahead.
  for (const auto& root : folders.roots()) {
    write_folder(root / "set/test", kTest);
    write_text(root / "set/test/class0/00.png", "no image");
  }
  for (const std::string& message : train_over(folders.roots(), kStreamed, 3)) CHECK(message.empty());
  write_text(folders.there.path() / "set/test/class1/2002.png", png(gradient(12, 10, 3, 977)));
  const std::vector<std::string> messages = train_over(folders.roots(), kStreamed, 6);
  CHECK_THAT(messages[0],
             ContainsSubstring("class1/2002.png: rank ") && ContainsSubstring(" has read other bytes there"));
  CHECK(messages[1] == messages[0]);
}

TEST_CASE("shared data: a process that holds its images in memory is compared with one that reads files",
          "[training][processes]") {
  const TwoFolders folders;
  // An image that only one of them can read keeps that one from decoding all ahead.
  write_text(folders.there.path() / "set/train/class2/02.png", "no image");
  const std::vector<std::string> messages = train_over(folders.roots(), "", 20);
  CHECK_THAT(messages[0], ContainsSubstring("has read other bytes there than rank "));
  CHECK(messages[1] == messages[0]);
}

TEST_CASE("shared data: of data in memory every example is compared before training", "[training][processes]") {
  const TwoFolders folders;
  for (const std::string& message : train_over(folders.roots(), "", 1)) CHECK(message.empty());
  write_text(folders.there.path() / kOther, png(gradient(12, 10, 3, 977)));
  for (const std::string& message : train_over(folders.roots(), "", 1)) {
    CHECK_THAT(message,
               ContainsSubstring("rank 1 on host here has other training, validation or test data than rank 0"));
  }
}

}  // namespace
}  // namespace arbalest::tests
