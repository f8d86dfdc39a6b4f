// A validation set with files of its own, for every kind of data: its examples, what they leave alone, and the errors
// for files that do not fit.
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/host/pool.h"
#include "saved_model/image_shards.h"
#include "tests/support/catch.h"
#include "tests/support/ratings_writer.h"
#include "tests/support/small_datasets.h"
#include "tests/training/whole_run.h"
#include "train/data/dataset_loading.h"
#include "train/data/dataset_verification.h"
#include "train/inspection.h"
#include "train/session/session.h"

namespace arbalest::tests {

namespace {

using dataflow::Split;
namespace fs = std::filesystem;

constexpr const char* kDecoding = "decoding { height: 8 width: 8 resize: 9 }";
constexpr const char* kArrays = "npy { directory: 'arrays' classes: 3 height: 4 width: 5 channels: 1";
constexpr const char* kOwnArrays =
    "npy { directory: 'arrays' classes: 3 height: 4 width: 5 channels: 1 validation_images: 'val_images.npy' "
    "validation_labels: 'val_labels.npy' }";

std::unique_ptr<dataflow::Dataset> load_split(const std::string& data, const fs::path& root, Split split) {
  engine::host::Pool pool(2);
  std::vector<std::string> warnings;
  const jobs::JobOptions job = parse(job_text(data));
  return jobs::load_dataset(job.data, root.string(), split, pool, warnings);
}

// Checks that the job's validation set has the examples that `same`, a job without one, has as its test set, and that
// the training set stays as it is.
void check_files(const std::string& data, const std::string& same, const fs::path& root) {
  CAPTURE(data);
  const jobs::JobOptions job = parse(job_text(data));
  engine::host::Pool pool(2);
  std::vector<std::string> warnings;
  const jobs::TrainingSets sets = jobs::load_training_sets(job.data, root.string(), pool, warnings);
  CHECK(warnings.empty());
  REQUIRE(sets.validation != nullptr);
  CHECK(sets.validation->name().ends_with(" validation"));
  CHECK(are_equal(*sets.validation, *load_split(same, root, Split::kTest)));
  CHECK(are_equal(*sets.training, *load_split(same, root, Split::kTrain)));
  CHECK_FALSE(are_equal(*sets.validation, *load_split(data, root, Split::kTest)));
}

// Returns the error of loading the sets of a job; it must be one of the data.
std::string problem_with(const std::string& data, const fs::path& root) {
  engine::host::Pool pool(2);
  std::vector<std::string> warnings;
  const jobs::JobOptions job = parse(job_text(data));
  try {
    jobs::load_training_sets(job.data, root.string(), pool, warnings);
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kData);
    return error.what();
  }
  FAIL("the validation set was accepted");
  return "";
}

// Ratings of the pairs of ten users and six items.
void write_rating_split(const fs::path& directory, const std::string& split, int count, int first) {
  fs::create_directories(directory);
  std::vector<std::int32_t> ids;
  std::vector<float> targets;
  for (int i = 0; i < count; ++i) {
    ids.insert(ids.end(), {(first + i) % 10, (first + i) / 10});
    targets.push_back(static_cast<float>(first + i) / 10.0F);
  }
  write_text(directory / (split + "_ids.npy"), npy("<i4", fmt::format("{}, 2", count), bytes_of(ids)));
  write_text(directory / (split + "_targets.npy"), npy("<f4", fmt::format("{},", count), bytes_of(targets)));
}

}  // namespace

TEST_CASE("a validation set may have files of its own, for every kind of data that has files", "[training]") {
  const TemporaryDirectory root;
  write_folders(root / "folders");
  write_folder(root / "folders/val", 18, 100);
  const std::string images = "images { directory: 'folders' classes: 3 " + std::string(kDecoding);
  check_files(images + " validation: 'val' }", images + " test: 'val' }", root.path());
  std::string list;
  for (int i = 0; i < 18; ++i) list += fmt::format("val/class{}/{:02}.png\n", i % 3, i);
  write_text(root / "folders/val.txt", list);
  check_files(images + " validation: 'val.txt' }", images + " test: 'val' }", root.path());

  const jobs::ImageShardsReport shards =
      jobs::write_image_shards({.source = {root / "folders", "train", "test", "check it", "val"},
                                .output = root / "shards",
                                .images_per_shard = 10,
                                .verify = true,
                                .stop_signal = nullptr});
  CHECK(shards.validation_images == 18);
  CHECK(fs::exists(root / "shards/validation-00001-of-00002"));
  const std::string records = "tfrecord { directory: 'shards' classes: 3 " + std::string(kDecoding);
  check_files(records + " validation: 'validation-*' }", records + " test: 'validation-*' }", root.path());

  for (const bool floats : {false, true}) {
    for (const auto& [split, count] : {std::pair("train", 60), std::pair("test", 60), std::pair("val", 12)}) {
      write_array(root / "arrays", split, floats, count, std::string(split) == "val" ? 7 : 0);
    }
    const std::string arrays = std::string(kArrays) + (floats ? " pixels: FLOAT32" : "");
    check_files(arrays + " validation_images: 'val_images.npy' validation_labels: 'val_labels.npy' }",
                arrays + " test_images: 'val_images.npy' test_labels: 'val_labels.npy' }", root.path());
  }

  write_rating_split(root / "ratings", "train", 30, 0);
  write_rating_split(root / "ratings", "test", 12, 30);
  write_rating_split(root / "ratings", "val", 14, 42);
  const std::string ratings = "ratings { directory: 'ratings' sizes: 10 sizes: 6";
  check_files(ratings + " validation_ids: 'val_ids.npy' validation_targets: 'val_targets.npy' }",
              ratings + " test_ids: 'val_ids.npy' test_targets: 'val_targets.npy' }", root.path());
}

TEST_CASE("MNIST and CIFAR name files of a validation set, and a training file that validates is not trained on",
          "[training]") {
  const TemporaryDirectory root;
  write_mnist(root / "mnist");
  // Other labels than those of the test set, so that the two sets differ.
  write_text(root / "mnist/mine-images-idx3-ubyte", idx_images(100, 28, 28));
  write_text(root / "mnist/mine-labels.gz", gzip(idx_labels(100)));
  const auto mnist =
      parse(job_text("mnist { validation_images: 'mine-images-idx3-ubyte' validation_labels: 'mine-labels' }"));
  engine::host::Pool pool(2);
  std::vector<std::string> warnings;
  const jobs::TrainingSets digits = jobs::load_training_sets(mnist.data, root.path().string(), pool, warnings);
  CHECK(digits.training->size() == 200);
  CHECK(digits.validation->name() == "mnist validation");
  REQUIRE(digits.validation->size() == 100);
  CHECK(dataflow::class_of(*digits.validation, 57) == 7);
  CHECK_THAT(
      problem_with("mnist { validation_images: 'mine-images-idx3-ubyte' validation_labels: 'none' }", root.path()),
      ContainsSubstring("mnist/none nor ") && ContainsSubstring("mnist/none.gz"));

  write_cifar(root / "cifar-10");
  write_text(root / "cifar-10/mine.bin", cifar_records(99));
  const auto loaded = [&](const std::string& file) {
    const jobs::JobOptions job = parse(job_text("cifar10 { validation: '" + file + "' }"));
    return jobs::load_training_sets(job.data, root.path().string(), pool, warnings);
  };
  const auto whole = load_split("cifar10 {}", root.path(), Split::kTrain);
  const jobs::TrainingSets mine = loaded("mine.bin");
  CHECK(are_equal(*mine.training, *whole));
  CHECK(mine.validation->size() == 30);
  const jobs::TrainingSets third = loaded("./data_batch_3.bin");
  REQUIRE(third.training->size() == 120);
  REQUIRE(third.validation->size() == 30);
  CHECK(bits_of(*third.validation, 5) == bits_of(*whole, 65));
  CHECK(bits_of(*third.training, 59) == bits_of(*whole, 59));
  CHECK(bits_of(*third.training, 60) == bits_of(*whole, 90));  // that of the fourth file
}

TEST_CASE("images of validation files go through the transforms of test images", "[training]") {
  const TemporaryDirectory root;
  write_folders(root / "folders");
  write_folder(root / "folders/val", 18, 100);
  const std::string images =
      "images { directory: 'folders' classes: 3 validation: 'val' " + std::string(kDecoding) + " }";
  engine::host::Pool pool(2);
  std::vector<std::string> warnings;
  const auto sets_of = [&](const std::string& data) {
    return jobs::load_training_sets(parse(job_text(data)).data, root.path().string(), pool, warnings);
  };
  const jobs::TrainingSets plain = sets_of(images);
  for (const char* augmentation :
       {"random_resized_crop { min_area: 0.2 }", "padding: 2 horizontal_flip: true cutout: 4"}) {
    const jobs::TrainingSets varied = sets_of(images + " augmentation { " + augmentation + " }");
    CHECK(are_equal(*varied.validation, *plain.validation));
    CHECK_FALSE(are_equal(*varied.training, *plain.training));
  }
}

TEST_CASE("validation files that are missing, of wrong sizes or without a class are errors that name the file",
          "[training]") {
  const TemporaryDirectory root;
  const fs::path arrays = root / "arrays";
  write_arrays(arrays, false);
  CHECK_THAT(problem_with(kOwnArrays, root.path()), ContainsSubstring((arrays / "val_images.npy").string()));
  const auto said = [&](int images, const std::vector<std::int32_t>& labels) {
    write_array(arrays, "val", false, images);
    write_text(arrays / "val_labels.npy", npy("<i4", fmt::format("{},", labels.size()), bytes_of(labels)));
    return problem_with(kOwnArrays, root.path());
  };
  CHECK_THAT(said(12, {0, 1, 2}),
             ContainsSubstring("holds 12 images but") && ContainsSubstring("do not belong together"));
  CHECK_THAT(said(12, {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1}),
             ContainsSubstring((arrays / "val_labels.npy").string() + ": there is no example of class 2, of which the "
                                                                      "training set has 20; add some"));
  CHECK_THAT(said(4, {0, 1, 2, 0}),
             ContainsSubstring("val_labels.npy: there are only 4 examples, fewer than the 10 that "
                               "a validation set needs; add some"));
  CHECK_THAT(said(12, {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}), ContainsSubstring("record 3: label 3 is not in [0, 3)"));
  const std::vector<std::int32_t> only_two = {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1};
  write_array(arrays, "train", false, 12);
  write_text(arrays / "train_labels.npy", npy("<i4", "12,", bytes_of(only_two)));
  CHECK_THAT(said(12, {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}),
             ContainsSubstring("there are 4 examples of class 2, of which the training set has none"));
  write_text(arrays / "val_images.npy", npy("|u1", "12, 1, 4, 4", std::string(12 * 16, 'x')));
  CHECK_THAT(problem_with(kOwnArrays, root.path()), ContainsSubstring("val_images.npy: has the shape (12, 1, 4, 4)"));

  write_folders(root / "folders");
  const std::string images = "images { directory: 'folders' classes: 3 " + std::string(kDecoding);
  CHECK_THAT(problem_with(images + " validation: 'val' }", root.path()),
             ContainsSubstring("folders/val: dataset is missing"));
  write_folder(root / "folders/val", 18, 100);
  fs::rename(root / "folders/val/class1", root / "folders/val/class7");
  CHECK_THAT(problem_with(images + " validation: 'val' }", root.path()),
             ContainsSubstring("folders/val: there is no image of class 'class1', which is one of the training set"));
  fs::create_directories(root / "folders/val/class1");
  fs::copy(root / "folders/train/class1/01.png", root / "folders/val/class1/01.png");
  CHECK_THAT(problem_with(images + " validation: 'val' }", root.path()),
             ContainsSubstring("class 'class7' is not among those of the training set"));
}

TEST_CASE("a file of another set is recognized under each of its names", "[training]") {
  const TemporaryDirectory root;
  write_cifar(root / "cifar-10");
  for (const std::string& name :
       {std::string("../cifar-10/test_batch.bin"), (root / "cifar-10/test_batch.bin").string(),
        std::string("../cifar-10/data_batch_5.bin")}) {
    CAPTURE(name);
    CHECK_THAT(problem_with("cifar10 { validation: '" + name + "' }", root.path()),
               ContainsSubstring(": this is the file '" + fs::path(name).filename().string() +
                                 "' of the training or test set"));
  }
}

TEST_CASE("examples of another set cannot validate by mistake", "[training]") {
  const TemporaryDirectory root;
  write_folders(root / "folders");
  write_text(root / "folders/val.txt", "test/class0/00.png\ntest/class1/01.png\ntrain/class2/05.png\n");
  CHECK_THAT(
      problem_with("images { directory: 'folders' classes: 3 validation: 'val.txt' " + std::string(kDecoding) + " }",
                   root.path()),
      ContainsSubstring("train/class2/05.png is also in " + (root / "folders/train").string()));
  jobs::write_image_shards({.source = {root / "folders", "train", "test"},
                            .output = root / "shards",
                            .images_per_shard = 10,
                            .verify = false,
                            .stop_signal = nullptr});
  for (const std::string shard : {"train", "test"}) {
    CHECK_THAT(problem_with("tfrecord { directory: 'shards' classes: 3 validation: '" + shard + "-0000?-of-*' " +
                                kDecoding + " }",
                            root.path()),
               ContainsSubstring(
                   fmt::format("{0}-00000-of-00006: this shard matches both '{0}-0000?-of-*' and '{0}-*'", shard)));
  }
}

TEST_CASE("a session evaluates validation files, and reads no training data for them alone", "[training]") {
  const TemporaryDirectory root;
  write_arrays(root / "arrays", false);
  write_array(root / "arrays", "val", false, 12, 7);
  const jobs::JobOptions job = parse(job_text(kOwnArrays));
  CHECK_FALSE(job.data.validation_examples.has_value());
  const auto input = GENERATE(jobs::Session::Input::kResident, jobs::Session::Input::kRing);
  using jobs::Session;
  Session session(job, root.path().string(), {}, input);
  CHECK(session.training_data().size() == 60);
  CHECK(session.test_examples() == 60);
  CHECK(session.validation_examples() == 12);
  CHECK(session.scheduler().evaluate(*session.validation_ring()).examples == 12);
  fs::remove(root / "arrays/train_images.npy");
  fs::remove(root / "arrays/test_images.npy");
  engine::host::Pool pool(2);
  std::vector<std::string> warnings;
  const auto alone = jobs::load_validation_set(job.data, root.path().string(), pool, warnings);
  CHECK(alone->size() == 12);
  CHECK(bits_of(*alone, 3) == bits_of(session.evaluation_data(), 63));
}

TEST_CASE("verification reads validation files, too", "[training]") {
  const TemporaryDirectory root;
  write_folders(root / "folders");
  write_folder(root / "folders/val", 18, 100);
  const jobs::JobOptions images =
      parse(job_text("images { directory: 'folders' classes: 3 validation: 'val' " + std::string(kDecoding) + " }"));
  const jobs::DatasetVerification sound = jobs::verify_dataset(images, root.path().string());
  CHECK(sound.is_sound());
  REQUIRE(sound.splits.size() == 3);
  CHECK(jobs::to_text(sound.splits[2]) == "folders validation: 18 examples, 3 classes of 6 to 6");
  write_text(root / "folders/val/class0/03.png", "no image");
  const jobs::DatasetVerification damaged = jobs::verify_dataset(images, root.path().string());
  CHECK_FALSE(damaged.is_sound());
  REQUIRE(damaged.splits[2].problems.size() == 1);
  CHECK_THAT(damaged.splits[2].problems[0], ContainsSubstring("val/class0/03.png"));

  write_arrays(root / "arrays", false);
  write_array(root / "arrays", "val", false, 9);
  const jobs::DatasetVerification few = jobs::verify_dataset(parse(job_text(kOwnArrays)), root.path().string());
  CHECK_FALSE(few.is_sound());
  REQUIRE(few.problems.size() == 1);
  CHECK_THAT(few.problems[0], ContainsSubstring("arrays validation: there are only 9 examples"));
}

TEST_CASE("the estimate says that only the files tell the size of a validation set", "[training]") {
  const auto warnings = [](const std::string& data) { return jobs::inspect(parse(job_text(data))).warnings; };
  CHECK(warnings("cifar10 {}").empty());
  CHECK(warnings("cifar10 { validation: 'data_batch_5.bin' }").empty());
  const std::vector<std::string> own = warnings("cifar10 { validation: 'mine.bin' }");
  REQUIRE(own.size() == 1);
  CHECK_THAT(own[0], ContainsSubstring("the number of examples of the validation set is known only from the files"));
  const auto bytes = [](const std::string& data) { return jobs::inspect(parse(job_text(data))).dataset_bytes; };
  CHECK(bytes("cifar10 { validation: 'data_batch_5.bin' }") == bytes("cifar10 {}"));
  CHECK(bytes("cifar10 { validation: 'mine.bin' }") == bytes("cifar10 {}"));
}

}  // namespace arbalest::tests
