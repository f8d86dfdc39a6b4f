// The validation set of every kind of data: its examples, the remaining training set, and the errors for data that
// cannot be divided.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "engine/base/error.h"
#include "engine/host/pool.h"
#include "saved_model/image_shards.h"
#include "tests/support/catch.h"
#include "tests/support/ratings_writer.h"
#include "tests/support/small_datasets.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/whole_run.h"
#include "train/data/dataset_loading.h"
#include "train/inspection.h"
#include "train/session/session.h"

namespace arbalest::tests {

namespace {

using Examples = std::vector<std::int64_t>;

// Checks that `part` has the examples `numbers` of `all`, in that order.
void check_part(const dataflow::Dataset& part, const dataflow::Dataset& all, const Examples& numbers) {
  REQUIRE(std::cmp_equal(part.size(), numbers.size()));
  int unlike = 0;
  for (std::int64_t i = 0; i < part.size(); ++i) {
    if (bits_of(part, i) != bits_of(all, numbers[static_cast<std::size_t>(i)])) ++unlike;
  }
  CHECK(unlike == 0);
}

// `text`: the data of a job without validation and augmentation.
void check_division(const std::string& data, const std::filesystem::path& root, double fraction, std::size_t expected) {
  CAPTURE(data);
  const jobs::JobOptions whole = parse(job_text(data));
  const jobs::JobOptions job = parse(job_text(data + fmt::format(" validation {{ fraction: {} seed: 5 }}", fraction)));
  engine::host::Pool pool(2);
  std::vector<std::string> warnings;
  const auto all = jobs::load_dataset(whole.data, root.string(), dataflow::Split::kTrain, pool, warnings);
  const jobs::TrainingSets sets = jobs::load_training_sets(job.data, root.string(), pool, warnings);
  const bool has_classes = !all->description().predicts_numbers();
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < all->size(); ++i) labels.push_back(has_classes ? dataflow::class_of(*all, i) : 0);
  const Examples chosen = dataflow::choose_validation({fraction, 5}, labels, all->description().classes());
  CHECK(chosen.size() == expected);
  REQUIRE(sets.validation != nullptr);
  check_part(*sets.validation, *all, chosen);
  check_part(*sets.training, *all, dataflow::others(chosen, all->size()));
  CHECK(jobs::load_training_sets(whole.data, root.string(), pool, warnings).validation == nullptr);
}

std::string images_data(const char* more = "") {
  return fmt::format("images {{ directory: 'folders' classes: 3 decoding {{ height: 8 width: 8 resize: 9 {} }} }}",
                     more);
}

constexpr const char* kArrays = "npy { directory: 'arrays' classes: 3 height: 4 width: 5 channels: 1 }";

// Returns the error of opening a session for a job whose data cannot be divided. The error must be of kind `kind`.
std::string refusal(const jobs::JobOptions& job, const std::filesystem::path& root, engine::ErrorKind kind) {
  try {
    jobs::Session session(job, root.string(), {});
  } catch (const engine::Error& error) {
    CHECK(error.kind() == kind);
    return error.what();
  }
  FAIL("the data was divided");
  return "";
}

}  // namespace

TEST_CASE("every kind of data splits off the examples that the rule chooses and keeps the others", "[training]") {
  const TemporaryDirectory root;
  check_division("digits {}", root.path(), 0.1, 2000);
  write_mnist(root / "mnist");
  check_division("mnist {}", root.path(), 0.2, 40);
  write_cifar(root / "cifar-10");
  check_division("cifar10 {}", root.path(), 0.2, 30);
  write_folders(root / "folders");
  check_division(images_data(), root.path(), 0.3, 18);
  jobs::write_image_shards({.source = {root / "folders", "train", "test"},
                            .output = root / "shards",
                            .images_per_shard = 25,
                            .verify = false,
                            .stop_signal = nullptr});
  check_division("tfrecord { directory: 'shards' classes: 3 decoding { height: 8 width: 8 resize: 9 } }", root.path(),
                 0.3, 18);
  write_arrays(root / "arrays", false);
  check_division(kArrays, root.path(), 0.3, 18);
  write_arrays(root / "numbers", true);
  check_division("npy { directory: 'numbers' classes: 3 height: 4 width: 5 channels: 1 pixels: FLOAT32 }", root.path(),
                 0.5, 30);
  write_ratings(root / "ratings");
  check_division("ratings { directory: 'ratings' sizes: 200 sizes: 120 }", root.path(), 0.1, kTrainingRatings / 10);
}

TEST_CASE("validation images, like test images, are not augmented and not cropped at random", "[training]") {
  const TemporaryDirectory root;
  write_folders(root / "folders");
  for (const auto& [source, augmentation] :
       std::vector<std::pair<std::string, std::string>>{{"digits {}", "padding: 3 horizontal_flip: true cutout: 4"},
                                                        {"digits {}", "random_resized_crop { min_area: 0.3 }"},
                                                        {images_data(), "random_resized_crop {} horizontal_flip: true"},
                                                        {images_data("on_unreadable: SKIP"), "cutout: 3"}}) {
    CAPTURE(source, augmentation);
    const std::string validation = " validation { fraction: 0.25 }";
    const jobs::JobOptions plain = parse(job_text(source + validation));
    const jobs::JobOptions varied = parse(job_text(source + validation + " augmentation { " + augmentation + " }"));
    engine::host::Pool pool(2);
    std::vector<std::string> warnings;
    const auto sets = jobs::load_training_sets(varied.data, root.path().string(), pool, warnings);
    const auto expected = jobs::load_training_sets(plain.data, root.path().string(), pool, warnings);
    REQUIRE(sets.validation->size() == expected.validation->size());
    int unlike = 0;
    for (std::int64_t i = 0; i < sets.validation->size(); ++i) {
      if (bits_of(*sets.validation, i) != bits_of(*expected.validation, i)) ++unlike;
    }
    CHECK(unlike == 0);
    int varied_images = 0;
    for (std::int64_t i = 0; i < sets.training->size(); ++i) {
      if (bits_of(*sets.training, i) != bits_of(*expected.training, i)) ++varied_images;
    }
    CHECK(varied_images > sets.training->size() / 2);
  }
}

TEST_CASE("a session's validation set does not depend on its seed, and epochs count the other examples", "[training]") {
  const std::vector<std::string> division = {"data.validation.fraction=0.15", "training.batch_size=64",
                                             "learners.per_device.fixed=2"};
  const auto with = [&](const char* more) {
    std::vector<std::string> settings = division;
    settings.emplace_back(more);
    return load("logistic-digits.txtpb", settings);
  };
  using jobs::Session;
  Session first(with("training.seed=1"), "", {});
  Session second(with("training.seed=2"), "", {});
  CHECK(first.training_data().size() == 17'000);
  CHECK(first.test_examples() == 5000);
  CHECK(first.validation_examples() == 3000);
  CHECK(first.evaluation_data().size() == 8000);
  CHECK(first.training_order().batches_per_epoch() == 265);
  CHECK(first.training_order().dropped_examples() == 40);
  int unlike = 0;
  for (std::int64_t i = 5000; i < 8000; ++i) {
    if (bits_of(first.evaluation_data(), i) != bits_of(second.evaluation_data(), i)) ++unlike;
  }
  CHECK(unlike == 0);
  Session other(with("data.validation.seed=2"), "", {});
  CHECK(bits_of(first.evaluation_data(), 5000) != bits_of(other.evaluation_data(), 5000));
  CHECK(first.scheduler().evaluate(*first.validation_ring()).examples == 3000);
  CHECK(first.scheduler().evaluate(first.test_ring()).examples == 5000);
  engine::host::Pool pool(2);
  std::vector<std::string> warnings;
  const auto alone = jobs::load_validation_set(with("training.seed=1").data, "", pool, warnings);
  CHECK(alone->size() == 3000);
  CHECK(bits_of(*alone, 17) == bits_of(first.evaluation_data(), 5017));
}

TEST_CASE("a session never trains on indices of validation examples", "[training]") {
  // Arrays whose images contain the number of the example.
  const TemporaryDirectory root;
  write_arrays(root / "arrays", false);
  const auto input = GENERATE(jobs::Session::Input::kResident, jobs::Session::Input::kRing);
  const jobs::JobOptions job = parse(job_text(std::string(kArrays) + " validation { fraction: 0.4 }"));
  jobs::Session session(job, root.path().string(), {}, input);
  std::vector<Bits> validation;
  for (std::int64_t i = session.test_examples(); i < session.evaluation_data().size(); ++i) {
    validation.push_back(bits_of(session.evaluation_data(), i));
  }
  REQUIRE(validation.size() == 24);
  const std::vector<std::int64_t> sizes(3, 20);
  std::vector<Bits> trained;
  for (int batch = 0; batch < 3 * 9; ++batch) {  // three epochs
    const auto next = session.training_ring().next();
    for (int row = 0; row < 4; ++row) trained.push_back(bits_of(session.training_data(), next->indices[row]));
    session.training_ring().release(next->number);
  }
  CHECK(std::ranges::none_of(
      trained, [&](const Bits& example) { return std::ranges::find(validation, example) != validation.end(); }));
  std::ranges::sort(trained);
  trained.erase(std::unique(trained.begin(), trained.end()), trained.end());
  CHECK(trained.size() == 36);  // all others
}

TEST_CASE("an unreadable validation image is left out and counted, and the test set is unchanged", "[training]") {
  const TemporaryDirectory root;
  write_folders(root / "folders");
  const jobs::JobOptions job =
      parse(job_text(images_data("on_unreadable: SKIP") + " validation { fraction: 0.3 seed: 5 }"));
  // Examples are numbered class by class; the files of class 0 are 00.png, 03.png and so on.
  std::vector<std::int32_t> labels;
  for (int i = 0; i < kImages; ++i) labels.push_back(i / 20);
  const std::int64_t damaged = dataflow::choose_validation({0.3, 5}, labels, 3).front();
  REQUIRE(damaged < 20);
  write_text(root / fmt::format("folders/train/class0/{:02}.png", 3 * damaged), "no image");
  jobs::Session session(job, root.path().string(), {});
  REQUIRE(session.warnings().size() == 1);
  CHECK_THAT(session.warnings()[0], ContainsSubstring("folders validation: 1 of 18 images cannot be read"));
  CHECK(session.scheduler().evaluate(*session.validation_ring()).examples == 17);
  CHECK(session.skipped_examples() == 1);
  CHECK_THAT(session.first_skipped(), ContainsSubstring(fmt::format("{:02}.png", 3 * damaged)));
  CHECK(session.scheduler().evaluate(session.test_ring()).examples == kImages);
  CHECK(session.skipped_examples() == 1);
  CHECK(session.training_ring().next()->tensors.empty());  // the whole training set could be decoded
}

TEST_CASE("the memory estimate includes the validation set", "[training]") {
  const auto bytes = [](const std::vector<std::string>& settings) {
    return jobs::inspect(load("lenet-digits.txtpb", settings));
  };
  const jobs::Inspection whole = bytes({});
  const jobs::Inspection divided = bytes({"data.validation.fraction=0.25"});
  // The host keeps the memory of examples that were copied to the validation set.
  CHECK(divided.dataset_bytes == whole.dataset_bytes + 5000 * (784 + 4));
  const jobs::JobOptions job = load("lenet-digits.txtpb", {"data.validation.fraction=0.25"});
  CHECK(job.data.training_examples == 15'000);
  CHECK(job.data.validation_examples == 5000);
}

TEST_CASE("the error for data that cannot be divided names the field of the job", "[training]") {
  const TemporaryDirectory root;
  const auto said = [&](int examples, const std::string& fraction) {
    write_arrays(root / "arrays", false, examples);
    const std::string text = job_text(std::string(kArrays) + " validation { fraction: " + fraction + " }");
    return refusal(parse(text), root.path(), engine::ErrorKind::kInvalidJob);
  };
  CHECK_THAT(
      said(60, "0.01"),
      ContainsSubstring("test:2:91: error: fraction 0.01 leaves class 0, of 20 examples, without a validation example; "
                        "raise it: 0.025 is enough\n    2 | ") &&
          ContainsSubstring("validation { fraction: 0.01 } }\n"));
  CHECK_THAT(said(60, "0.1"),
             ContainsSubstring("test:2:91: error: fraction 0.1 gives 6 examples to validate with, fewer than "
                               "the 10 that a validation set needs; raise it: 0.175 is enough"));
  CHECK_THAT(said(12, "0.5"), ContainsSubstring("a training set of 12 examples is too small to be divided"));
  CHECK_THAT(said(4, "0.5"), ContainsSubstring("class 1, of 1 example, cannot both train and validate"));
  // The suggested values are sufficient.
  write_arrays(root / "arrays", false, 60);
  const auto with = [&](const std::string& fraction) {
    return jobs::parse_job(jobs::SourceText("test", job_text(kArrays)),
                           std::vector<std::string>{"data.validation.fraction=" + fraction});
  };
  CHECK(jobs::Session(with("0.175"), root.path().string(), {}).validation_examples() == 12);
  CHECK_THAT(refusal(with("0.01"), root.path(), engine::ErrorKind::kUsage),
             ContainsSubstring("--set data.validation.fraction=0.01: error: fraction 0.01 leaves class 0"));
}

TEST_CASE("a validation set that is too small for the target is a warning", "[training]") {
  const TemporaryDirectory root;
  write_arrays(root / "arrays", false);
  const auto warnings = [&](const std::string& target) {
    const std::string text = job_text(std::string(kArrays) + " validation { fraction: 0.2 }");
    const jobs::JobOptions job =
        jobs::parse_job(jobs::SourceText("test", text), std::vector<std::string>{"training.target_accuracy=" + target});
    return jobs::Session(job, root.path().string(), {}).warnings();
  };
  CHECK(warnings("0.9").empty());  // 11 of 12 are 0.917
  REQUIRE(warnings("0.95").size() == 1);
  CHECK_THAT(warnings("0.95")[0], ContainsSubstring("with 12 examples to validate with, only a model without a single "
                                                    "error reaches the target accuracy 0.95"));
  CHECK(warnings("1").empty());  // an explicit target of 1
}

}  // namespace arbalest::tests
