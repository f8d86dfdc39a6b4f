// A user's own images, from files to a trained model.
#include "tests/cli/small_run.h"
#include "tests/support/catch.h"
#include "tests/support/image_parts.h"

namespace arbalest::tests {

namespace {

namespace fs = std::filesystem;

constexpr const char* kJob = R"(name: "own"
model { zoo { logistic_regression {} } }
data {
  images { directory: "own" classes: 2 decoding { height: 8 width: 8 resize: 9 } }
  augmentation { random_resized_crop {} padding: 1 }
}
training { batch_size: 4 max_epochs: 6 }
learning_rate { base: 0.05 }
learners { per_device { fixed: 1 } }
)";

// Dark and bright images of several sizes: 12 for training, 4 for testing.
class OwnImages {
 public:
  OwnImages() {
    write_text(program_ / "own.txtpb", kJob);
    for (int i = 0; i < 16; ++i) {
      const bool is_dark = i % 2 == 0;
      const fs::path folder =
          program_ / (std::string("data/own/") + (i < 12 ? "train/" : "test/") + (is_dark ? "dark" : "light"));
      fs::create_directories(folder);
      const auto image =
          plain(10 + i, 30 - i, std::vector<std::uint8_t>(3, static_cast<std::uint8_t>(is_dark ? i : 240 - i)));
      write_text(folder / (std::to_string(i) + (i % 4 < 2 ? ".jpg" : ".png")), i % 4 < 2 ? jpeg(image) : png(image));
    }
  }

  Completed train(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"train", "own.txtpb", "--data-root", "data", "--output", "run"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return program_.run(arguments);
  }

  const Program& program() const { return program_; }
  fs::path file(const std::string& name) const { return program_ / ("data/own/" + name); }

 private:
  Program program_;
};

}  // namespace

TEST_CASE("own images: a folder of JPEG and PNG files trains, and the model evaluates to the same accuracy") {
  const OwnImages own;
  const Completed result = own.train();
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const nlohmann::json summary = summary_of(own.program() / "run");
  CHECK(summary["test_accuracy"] == 1.0);
  CHECK(summary["skipped_examples"] == 0);
  const Completed again = own.program().run({"evaluate", "run", "--json"});  // the run knows its data root
  INFO(again.err);
  CHECK(nlohmann::json::parse(again.out)["test_accuracy"] == 1.0);
}

TEST_CASE("own images: an unreadable image ends the run, and the error names it") {
  const OwnImages own;
  // Few images are read before the start, for the loss of the untrained model, and a run that fails there leaves
  // nothing.
  write_text(own.file("train/light/5.jpg"), read_text(own.file("train/light/5.jpg")).substr(0, 200));
  const Completed begun = own.train();
  CHECK(begun.exit_code == 4);
  CHECK_THAT(begun.err, ContainsSubstring("own/train/light/5.jpg: is no valid JPEG image"));
  CHECK_FALSE(fs::exists(own.program() / "run"));
}

TEST_CASE("own images: a job may skip unreadable images, and counts them") {
  const OwnImages own;
  write_text(own.file("train/light/5.jpg"), "");
  write_text(own.file("test/dark/12.jpg"), "no image");
  const Completed result = own.train({"--set", "data.images.decoding.on_unreadable=SKIP"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK_THAT(result.err,
             ContainsSubstring("1 of 4 images cannot be read and are left out") &&
                 ContainsSubstring("test/dark/12.jpg: is neither a JPEG, a PNG nor a WebP image") &&
                 ContainsSubstring("mini-batches went without 12 images that could not be read; the first: ") &&
                 ContainsSubstring("own/train/light/5.jpg: is empty; get it again\n"));
  const nlohmann::json summary = summary_of(own.program() / "run");
  CHECK(summary["skipped_examples"] == 12);  // in each epoch, and in each evaluation
  CHECK(summary["test_accuracy"] == 1.0);
  const Completed again = own.program().run({"evaluate", "run"});
  CHECK_THAT(again.out, ContainsSubstring("test_accuracy 1\n") && ContainsSubstring("examples 3\n"));
  CHECK_THAT(again.err, ContainsSubstring("left out 1 image that could not be read; the first: ") &&
                            ContainsSubstring("test/dark/12.jpg: is neither a JPEG, a PNG nor a WebP image"));
}

TEST_CASE("own images: damaged orientations are ignored, and every command tells of them once") {
  const OwnImages own;
  const std::string damaged = exif(9, true);
  for (const char* name : {"train/dark/2.png", "train/light/3.png"}) {
    write_text(own.file(name), png_with(read_text(own.file(name)), "eXIf", damaged));
  }
  write_text(own.file("train/light/5.jpg"), jpeg_with_exif(read_text(own.file("train/light/5.jpg")), "damaged"));
  const std::string two = "2.png: it is 9, which is not in [1, 8]";
  const std::string three = "3 images have a damaged EXIF orientation, which is ignored; the first: ";
  const Program& program = own.program();
  const std::vector<Completed> told = {own.train(), program.run({"data", "verify", "own.txtpb", "--data-root", "data"}),
                                       program.run({"data", "convert", "data/own", "records"}),
                                       program.run({"predict", "run", "data/own/train"})};
  for (std::size_t i = 0; i < told.size(); ++i) {
    CAPTURE(i, told[i].err);
    CHECK(told[i].exit_code == 0);
    const std::size_t at = told[i].err.find(i == 2 ? "the EXIF orientation of 3 images is damaged" : three);
    REQUIRE(at != std::string::npos);
    CHECK_THAT(told[i].err.substr(at), ContainsSubstring(two));
    CHECK(told[i].err.find("damaged", at + 60) == std::string::npos);
  }
  const Completed ignored = own.program().run(
      {"train", "own.txtpb", "--data-root", "data", "--output", "other", "--set", "data.images.orientation=IGNORE"});
  CHECK(ignored.exit_code == 0);
  CHECK(ignored.err.find("EXIF") == std::string::npos);
}

TEST_CASE("own images: WebP files are read, and files that are left out are counted by their extensions") {
  const OwnImages own;
  write_text(own.file("train/dark/a.webp"), webp(plain(20, 14, {3, 3, 3})));
  for (const char* name : {"b.heic", "c.HEIC", "notes.txt", "README"}) write_text(own.file("train/dark") / name, "x");
  const Completed verified = own.program().run({"data", "verify", "own.txtpb", "--data-root", "data"});
  CAPTURE(verified.out);
  CHECK(verified.exit_code == 0);
  CHECK_THAT(verified.out, ContainsSubstring("own train: 13 examples"));
  CHECK_THAT(verified.err,
             ContainsSubstring("4 entries not named as images are left out (2 .heic, 1 .txt, 1 without an "
                               "extension); the first: "));
}

TEST_CASE("own images: a job without readable images is an error") {
  const OwnImages own;
  for (int i = 0; i < 12; ++i) {
    const std::string name = "train/" + std::string(i % 2 == 0 ? "dark/" : "light/") + std::to_string(i);
    write_text(own.file(name + (i % 4 < 2 ? ".jpg" : ".png")), "no image");
  }
  const Completed result =
      own.train({"--set", "data.images.decoding.on_unreadable=SKIP", "--set", "data.images.decoding.max_skipped=1"});
  CHECK(result.exit_code == 4);
  CHECK_THAT(result.err, ContainsSubstring("no example of the training data can be read"));
  CHECK(summary_of(own.program() / "run")["status"] == "failed");
}

TEST_CASE("own images: a dataset that differs from the job's description is refused") {
  const OwnImages own;
  CHECK_THAT(own.train({"--set", "data.images.classes=3"}).err, ContainsSubstring("but the job says classes: 3"));
  const Completed no_resize =
      own.program().run({"train", "own.txtpb", "--data-root", "data", "--set", "data.augmentation={}", "--set",
                         "data.images.decoding={height: 8 width: 8}"});
  CHECK(no_resize.exit_code == 4);
  CHECK_THAT(no_resize.err, ContainsSubstring("set decoding.resize"));
  fs::remove_all(own.file("train"));
  const Completed missing = own.train();
  CHECK(missing.exit_code == 4);
  CHECK_THAT(missing.err, ContainsSubstring("name the folder that holds 'own' with --data-root"));
  CHECK_THAT(own.program().run({"data", "convert", "data/own", "records"}).err,
             ContainsSubstring("dataset is missing") && ContainsSubstring("; check the path") &&
                 !ContainsSubstring("--data-root"));
}

}  // namespace arbalest::tests
