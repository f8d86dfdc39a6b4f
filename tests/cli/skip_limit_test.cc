// Runs over images some of which cannot be read: how many may be left out (max_skipped).
#include <chrono>
#include <csignal>
#include <filesystem>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include "tests/cli/small_run.h"
#include "tests/support/catch.h"
#include "tests/support/image_writer.h"

namespace arbalest::tests {

namespace {

namespace fs = std::filesystem;

// The random crop keeps images from being decoded once for all epochs.
constexpr const char* kJob = R"(name: "many"
model { zoo { logistic_regression {} } }
data {
  images { directory: "many" classes: 2 decoding { height: 8 width: 8 resize: 9 on_unreadable: SKIP } }
  augmentation { random_resized_crop {} }
}
training { batch_size: 4 max_epochs: 2 }
learning_rate { base: 0.05 }
learners { per_device { fixed: 1 } }
)";

// 200 dark and bright images for training and 20 for testing.
class ManyImages {
 public:
  ManyImages() {
    write_text(program_ / "many.txtpb", kJob);
    for (int i = 0; i < 220; ++i) {
      write_text(path(i), png(plain(10, 10, std::vector<std::uint8_t>(3, i % 2 == 0 ? 20 : 220))));
    }
  }

  // Of images 0 to 219; the last 20 are the test set.
  fs::path path(int image) const {
    const fs::path folder =
        program_ / fmt::format("data/many/{}/{}", image < 200 ? "train" : "test", image % 2 == 0 ? "dark" : "light");
    fs::create_directories(folder);
    return folder / fmt::format("{:03}.png", image);
  }
  void damage(const std::vector<int>& images) const {
    for (const int image : images) write_text(path(image), "no image");
  }

  static std::vector<std::string> arguments(const std::vector<std::string>& settings = {}) {
    std::vector<std::string> all = {"train", "many.txtpb", "--data-root", "data", "--output", "run"};
    for (const std::string& setting : settings) all.insert(all.end(), {"--set", setting});
    return all;
  }
  Completed train(const std::vector<std::string>& settings = {}) const { return program_.run(arguments(settings)); }
  const Program& program() const { return program_; }
  bool has_checkpoint() const {
    std::error_code none_yet;
    for (const fs::directory_entry& entry : fs::directory_iterator(run() / "checkpoints", none_yet)) {
      if (entry.path().filename().string().find("partial") == std::string::npos) return true;
    }
    return false;
  }
  fs::path run() const { return program_ / "run"; }

 private:
  Program program_;
};

const std::string kOneCrop = "data.augmentation={}";  // images are decoded once, at the start
const std::string kMaxSkipped = "data.images.decoding.max_skipped=";

}  // namespace

TEST_CASE("max_skipped: a hundredth of an epoch's images may be missing by default, and is counted by epoch") {
  const ManyImages images;
  images.damage({7, 30});
  const Completed result = images.train();
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(summary_of(images.run())["skipped_examples"] == 4);  // 2 in each of 2 epochs
}

TEST_CASE("max_skipped: one image more ends the run with the numbers, the first causes and the remedy") {
  const ManyImages images;
  images.damage({7, 30, 31});
  for (const std::string& decoded_ahead : {std::string("data.augmentation.padding=0"), kOneCrop}) {
    INFO(decoded_ahead);
    fs::remove_all(images.run());
    const Completed result = images.train({decoded_ahead});
    INFO(result.err);
    CHECK(result.exit_code == 4);
    CHECK_THAT(result.err,
               ContainsSubstring("many train: 3 of 200 images cannot be read, but max_skipped: 0.01 allows 2"));
    for (const char* name : {"light/007.png", "dark/030.png", "light/031.png"}) {
      CHECK_THAT(result.err, ContainsSubstring(name));
    }
    CHECK_THAT(result.err, ContainsSubstring("is neither a JPEG, a PNG nor a WebP image"));
    CHECK_THAT(result.err, ContainsSubstring("arbalest data verify") && ContainsSubstring("raise max_skipped"));
    CHECK_FALSE(fs::exists(images.run() / "model.safetensors"));
  }
  fs::remove_all(images.run());
  CHECK(images.train({kMaxSkipped + "0.015"}).exit_code == 0);
}

TEST_CASE("max_skipped: of a small set one image may always be missing, but not two") {
  const ManyImages images;
  images.damage({200});  // 1 of 20 test images is more than a hundredth
  const Completed one = images.train();
  INFO(one.err);
  REQUIRE(one.exit_code == 0);
  images.damage({201});
  const Completed evaluated = images.program().run({"evaluate", "run"});
  CHECK(evaluated.exit_code == 4);
  CHECK_THAT(evaluated.err, ContainsSubstring("2 of 20 images cannot be read"));
  fs::remove_all(images.run());
  const Completed two = images.train({kOneCrop});
  CHECK(two.exit_code == 4);
  CHECK_THAT(two.err, ContainsSubstring("many test: 2 of 20 images cannot be read"));
}

TEST_CASE("max_skipped: a folder that disappears during a run ends it, and the last checkpoint stays") {
  const ManyImages images;
  Subprocess run =
      images.program().start(ManyImages::arguments({"training.max_epochs=1000000", "checkpoint.every_epochs=1"}));
  while (run.is_running() && !images.has_checkpoint()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const fs::path folder = images.path(1).parent_path();
  fs::rename(folder, folder.string() + ".away");
  const Completed result = run.wait();
  INFO(result.err);
  CHECK(result.exit_code == 4);
  CHECK_THAT(result.err, ContainsSubstring("of 200 images cannot be read, but max_skipped: 0.01 allows 2"));
  CHECK_THAT(result.err, ContainsSubstring("light/") && ContainsSubstring("cannot be opened"));
  CHECK(summary_of(images.run())["status"] == "failed");
  CHECK_FALSE(fs::exists(images.run() / "model.safetensors"));
  CHECK(images.has_checkpoint());

  fs::rename(folder.string() + ".away", folder);
  std::vector<std::string> arguments = ManyImages::arguments({"training.max_epochs=1000000"});
  arguments.insert(arguments.end(), {"--resume", "auto"});
  Subprocess resumed = images.program().start(arguments);
  REQUIRE(resumed.wait_for_message("\nepoch "));
  resumed.send(SIGTERM);
  CHECK(resumed.wait().exit_code == 128 + SIGTERM);
}

TEST_CASE("max_skipped: `data verify` names all damaged images, whatever the limit") {
  const ManyImages images;
  images.damage({7, 30, 31, 50});
  const Completed result = images.program().run({"data", "verify", "many.txtpb", "--data-root", "data"});
  CHECK(result.exit_code == 4);
  CHECK_THAT(result.out + result.err, ContainsSubstring("4 cannot be read"));
}

}  // namespace arbalest::tests
