// The data of a job: defaults, checks, and its resolved text.
#include "options/job_options.h"

#include <cmath>

#include <fmt/format.h>

#include "checkpoint/job/job_changes.h"
#include "tests/jobs/job_text.h"

namespace arbalest::jobs {

namespace {

using Kind = DataOptions::Kind;
using Floats = std::vector<float>;

std::string with_data(std::string_view data) { return changed("data { digits {} }", data); }

// Returns the first line of the error for a job with such data.
std::string said_of(std::string_view data) {
  const std::string text = refusal(with_data(data));
  return text.substr(0, text.find('\n'));
}

}  // namespace

TEST_CASE("the data of a job is known before any file is read") {
  const DataOptions cifar10 = parse(with_data("data { cifar10 {} }")).data;
  CHECK(cifar10.kind == Kind::kCifar10);
  CHECK(cifar10.directory == "cifar-10");
  CHECK(cifar10.input == dataflow::image_input({3, 32, 32}, 10));
  CHECK(cifar10.normalization.mean == Floats{0.4914F, 0.4822F, 0.4465F});
  CHECK(cifar10.training_examples == 50'000);
  const DataOptions cifar100 = parse(with_data("data { cifar100 { directory: \"/there\" } }")).data;
  CHECK(cifar100.kind == Kind::kCifar100);
  CHECK(cifar100.directory == "/there");
  CHECK(cifar100.input.classes() == 100);
}

TEST_CASE("normalization is given per channel or for all channels") {
  const DataOptions each =
      parse(with_data("data { cifar10 {} normalization { mean: [0.1, 0.2, 0.3] stddev: 0.5 } }")).data;
  CHECK(each.normalization.mean == Floats{0.1F, 0.2F, 0.3F});
  CHECK(each.normalization.stddev == Floats{0.5F});
  const JobOptions all = parse(with_data("data { cifar10 {} }"), {"data.normalization.mean=0.25"});
  CHECK(all.data.normalization.mean == Floats{0.25F});
  CHECK(parse(all.resolved_text).data.normalization.mean == Floats{0.25F});
  CHECK(said_of("data { cifar10 {} normalization { mean: [0.1, 0.2] } }") ==
        "job.txtpb:3:42: error: mean has 2 numbers, but the images have 3 channels; give one for each channel, or one "
        "for all");
  CHECK(said_of("data { digits {} normalization { stddev: [0.1, 0.2] } }") ==
        "job.txtpb:3:43: error: stddev has 2 numbers, but the images have one channel; give one for each channel, or "
        "one for all");
  CHECK(said_of("data { cifar10 {} normalization { mean: [0.1, 0.2, 2] } }") ==
        "job.txtpb:3:52: error: mean must be in [0, 1], not 2");
}

TEST_CASE("there is no augmentation unless the job asks for it, and it uses the job's seed") {
  CHECK_FALSE(parse(with_data("data { cifar10 {} }")).data.augmentation.changes_images());
  const std::string text = with_data("data { cifar10 {} augmentation { padding: 4 horizontal_flip: true cutout: 8 } }");
  const JobOptions job = parse(text, {"training.seed=12"});
  const engine::Augmentation expected{.padding = 4, .cutout = 8, .horizontal_flip = true, .seed = 12};
  CHECK(job.data.augmentation == expected);
  CHECK(parse(job.resolved_text).data.augmentation == expected);
  CHECK(said_of("data { cifar10 {} augmentation { padding: 32 } }") ==
        "job.txtpb:3:34: error: padding must be in [0, 31], not 32");
  CHECK(said_of("data { cifar10 {} augmentation { padding: -1 } }") ==
        "job.txtpb:3:34: error: padding must be in [0, 31], not -1");
  CHECK(said_of("data { cifar10 {} augmentation { cutout: 65 } }") ==
        "job.txtpb:3:34: error: cutout must be in [0, 64], not 65");
}

TEST_CASE("images of files are described by the job") {
  const std::string text = with_data(
      "data { images { directory: \"own\" train: \"train.txt\" classes: 7 decoding { height: 24 width: 32 resize: 40 "
      "on_unreadable: SKIP } } augmentation { random_resized_crop { min_area: 0.5 } } }");
  const JobOptions job = parse(text);
  CHECK(job.data.kind == Kind::kImages);
  CHECK(job.data.directory == "own");
  CHECK(job.data.train == "train.txt");
  CHECK(job.data.test == "test");
  CHECK(job.data.input == dataflow::image_input({3, 24, 32}, 7));
  CHECK(job.data.resize == 40);
  CHECK(job.data.on_unreadable == dataflow::OnUnreadable::kSkip);
  CHECK(job.data.skip_limit.fraction == 0.01);
  CHECK(parse(text, {"data.images.decoding.max_skipped=0.25"}).data.skip_limit.fraction == 0.25);
  CHECK(job.data.random_crop == engine::RandomResizedCrop{.min_area = 0.5F, .log_max_aspect = std::log(1.3333F)});
  CHECK_FALSE(job.data.augmentation.changes_images());
  CHECK(job.data.normalization.mean == Floats{0.5F});
  CHECK_FALSE(job.data.training_examples.has_value());
  const JobOptions again = parse(job.resolved_text);
  CHECK(again.resolved_text == job.resolved_text);
  CHECK_THAT(job.resolved_text, ContainsSubstring("max_skipped: 0.01"));
  CHECK(again.data.skip_limit.fraction == 0.01);
  CHECK(again.data.random_crop == job.data.random_crop);
  CHECK(parse(text, {"training.batch_size=1000000"}).training.batch_size == 1'000'000);
}

TEST_CASE("a run may be resumed with another on_unreadable or max_skipped, or after a version that had none") {
  const std::string images =
      "images { directory: \"own\" classes: 7 decoding { height: 24 width: 32 on_unreadable: SKIP } }";
  const JobOptions job = parse(with_data("data { " + images + " }"));
  std::string before = job.resolved_text;
  const std::size_t field = before.find("max_skipped");
  REQUIRE(field != std::string::npos);
  before.erase(field, before.find('\n', field) - field);
  CHECK_NOTHROW(check_same_job(before, {}, job, {}));
  const JobOptions more = parse(with_data("data { " + images + " }"), {"data.images.decoding.max_skipped=0.5"});
  CHECK_NOTHROW(check_same_job(job.resolved_text, {}, more, {}));
  const JobOptions stops = parse(with_data("data { " + images + " }"), {"data.images.decoding.on_unreadable=STOP"});
  CHECK_NOTHROW(check_same_job(stops.resolved_text, {}, job, {}));  // as the message about a damaged image advises
  CHECK_THROWS(check_same_job(job.resolved_text, {},
                              parse(with_data("data { " + images + " }"), {"data.images.decoding.resize=40"}), {}));
}

TEST_CASE("a job chooses how image files become pixels") {
  for (const std::string source : {"images", "tfrecord"}) {
    const auto job = [&](const std::string& orientation, const std::string& reduced) {
      return parse(with_data("data { " + source + " { directory: \"own\" classes: 7 " + orientation +
                             " decoding { height: 24 width: 32 " + reduced + " } } }"));
    };
    const JobOptions usual = job("", "");
    CHECK(usual.data.pixels == dataflow::PixelRules{});
    CHECK_THAT(usual.resolved_text, ContainsSubstring("orientation: APPLY") && ContainsSubstring("reduced: false"));
    CHECK(job("orientation: APPLY", "reduced: false").data.pixels == dataflow::PixelRules{});
    const JobOptions other = job("orientation: IGNORE", "reduced: true");
    CHECK(other.data.pixels == dataflow::PixelRules{.is_oriented = false, .is_reduced = true});
    CHECK(parse(other.resolved_text).data.pixels == other.data.pixels);
    CHECK(parse(other.resolved_text).resolved_text == other.resolved_text);
  }
  CHECK_THAT(
      said_of("data { images { directory: \"a\" classes: 2 orientation: TURN decoding { height: 2 width: 2 } } }"),
      ContainsSubstring("job.txtpb:3:56: error: ") && ContainsSubstring("APPLY, IGNORE"));
  CHECK_THAT(said_of("data { images { directory: \"a\" classes: 2 decoding { height: 2 width: 2 reduced: 2 } } }"),
             ContainsSubstring("job.txtpb:3:82: error: reduced must be true or false, not 2"));
}

TEST_CASE("missing fields for image files are errors, and nothing is derived from invalid ones") {
  const auto images = [](const std::string& text) { return said_of("data { images { " + text + " } }"); };
  CHECK(images("classes: 2 decoding { height: 28 width: 28 }") ==
        "job.txtpb:3:8: error: directory is missing: the folder of the files, below the data root ('.' is "
        "the data root itself)");
  CHECK(images("directory: \"a\" decoding { height: 28 width: 28 }") ==
        "job.txtpb:3:8: error: classes is missing: how many classes the images have");
  CHECK(images("directory: \"a\" classes: 2 decoding { width: 28 }") ==
        "job.txtpb:3:43: error: height is missing: the height of the model's images");
  CHECK(images("directory: \"a\" classes: 2 decoding { height: 28 width: 4097 }") ==
        "job.txtpb:3:65: error: width must be in [1, 4096], not 4097");
  CHECK(images("directory: \"a\" classes: 2 decoding { height: 28 width: 28 channels: 2 }") ==
        "job.txtpb:3:75: error: channels must be 1 or 3, not 2");
  CHECK(images("directory: \"a\" classes: 2 decoding { height: 28 width: 28 resize: 27 }") ==
        "job.txtpb:3:75: error: resize must be in [28, 4096], not 27");
  for (const char* value : {"0", "1.01"}) {
    CHECK_THAT(images(fmt::format("directory: \"a\" classes: 2 decoding {{ height: 28 width: 28 on_unreadable: SKIP "
                                  "max_skipped: {} }}",
                                  value)),
               ContainsSubstring("job.txtpb:3:95: error: max_skipped must be in (0, 1], not "));
  }
  CHECK_THAT(images("directory: \"a\" classes: 2 decoding { height: 28 width: 28 max_skipped: 0.1 }"),
             ContainsSubstring("job.txtpb:3:75: error: max_skipped has no effect") &&
                 ContainsSubstring("add on_unreadable: SKIP, or remove max_skipped"));
  CHECK_THAT(
      refusal(with_data("data { images { directory: \"a\" classes: 2 decoding { height: 28 width: 28 channels: 2 "
                        "resize: 27 } } }")),
      ContainsSubstring("channels must be 1 or 3, not 2") && ContainsSubstring("resize must be in [28, 4096], not 27"));
  CHECK(images("directory: \"a\" classes: 0 decoding { height: 28 width: 28 }") ==
        "job.txtpb:3:32: error: classes must be in [1, 1000000], not 0");
  CHECK(images("directory: \"a\" train: \"\" classes: 2 decoding { height: 28 width: 28 }") ==
        "job.txtpb:3:32: error: train is empty; leave it out to get its default");
}

TEST_CASE("shards and arrays are described by the job") {
  const JobOptions shards =
      parse(with_data("data { tfrecord { directory: \"r\" classes: 1000 first_label: 1 decoding { height: 224 width: "
                      "224 resize: 256 } } "
                      "augmentation { random_resized_crop {} } }"));
  CHECK(shards.data.kind == Kind::kTfrecord);
  CHECK((shards.data.train == "train-*" && shards.data.test == "test-*" && shards.data.first_label == 1));
  CHECK(shards.data.input == dataflow::image_input({3, 224, 224}, 1000));
  CHECK(shards.data.random_crop ==
        engine::RandomResizedCrop{.min_area = 0.08F, .log_max_aspect = static_cast<float>(std::log(1.3333))});
  CHECK(parse(shards.resolved_text).resolved_text == shards.resolved_text);
  CHECK_THAT(shards.resolved_text, !ContainsSubstring("max_skipped"));  // it is only for on_unreadable: SKIP
  const JobOptions arrays =
      parse(with_data("data { npy { directory: \"a\" classes: 1000 channels: 1 height: 30 width: 31 } }"));
  CHECK(arrays.data.kind == Kind::kNpy);
  CHECK((arrays.data.train == "train_images.npy" && arrays.data.test_labels == "test_labels.npy"));
  CHECK(arrays.data.input == dataflow::image_input({1, 30, 31}, 1000));
  CHECK(parse(arrays.resolved_text).resolved_text == arrays.resolved_text);
  CHECK(said_of("data { npy { directory: \"a\" classes: 1000001 height: 30 width: 31 } }") ==
        "job.txtpb:3:29: error: classes must be in [1, 1000000], not 1000001");
  CHECK(
      said_of("data { tfrecord { directory: \"a\" classes: 2 first_label: -1 decoding { height: 30 width: 31 } } }") ==
      "job.txtpb:3:45: error: first_label must be in [0, 1000000], not -1");
}

TEST_CASE("floating-point arrays are not normalized unless the job asks for it") {
  const std::string npy =
      "data { npy { directory: \"a\" classes: 2 channels: 20 height: 30 width: 31 pixels: FLOAT32 } ";
  const JobOptions numbers = parse(with_data(npy + "}"));
  CHECK(numbers.data.kind == Kind::kNumbers);
  CHECK((numbers.data.normalization.mean == Floats{0.0F} && numbers.data.normalization.stddev == Floats{1.0F}));
  CHECK(parse(numbers.resolved_text).resolved_text == numbers.resolved_text);
  const JobOptions normalized = parse(with_data(npy + "normalization { mean: -300 stddev: 5000 } }"));
  CHECK((normalized.data.normalization.mean == Floats{-300.0F} &&
         normalized.data.normalization.stddev == Floats{5000.0F}));
  CHECK(said_of(npy + "normalization { stddev: 0 } }") ==
        "job.txtpb:3:108: error: stddev must be in [1e-06, 1000000], not 0");
  const std::string bytes = "data { npy { directory: \"a\" classes: 2 height: 30 width: 31 } ";
  CHECK(parse(with_data(bytes + "}")).data.normalization.mean == Floats{0.5F});
  CHECK(said_of(bytes + "normalization { mean: -300 } }") == "job.txtpb:3:79: error: mean must be in [0, 1], not -300");
  CHECK_THAT(said_of("data { npy { directory: \"a\" classes: 2 height: 30 width: 31 pixels: FLOAT16 } }"),
             ContainsSubstring("'FLOAT16' is not a value of pixels; did you mean 'FLOAT32'? (values: UINT8, FLOAT32)"));
}

TEST_CASE("cutout is refused for images of a single pixel") {
  const std::string row = "data { npy { directory: \"a\" classes: 2 channels: 20 height: 1 width: 1 pixels: FLOAT32 } ";
  std::string text = with_data(row + "augmentation { cutout: 1 } }");
  text.replace(text.find("lenet {}"), 8, "logistic_regression {}");
  CHECK_THAT(refusal(text), ContainsSubstring("error: cutout must be in [0, 0], not 1"));
}

TEST_CASE("random crops of images of one size are made by the training step") {
  const std::string text = with_data(
      GENERATE("data { cifar10 {} augmentation { random_resized_crop { min_area: 0.25 max_aspect: 2 } } }",
               "data { npy { directory: \"a\" classes: 2 height: 30 width: 31 } augmentation { random_resized_crop { "
               "min_area: 0.25 max_aspect: 2 } } }"));
  const JobOptions job = parse(text);
  CHECK(job.data.augmentation.random_crop ==
        engine::RandomResizedCrop{.min_area = 0.25F, .log_max_aspect = std::log(2.0F)});
  CHECK_FALSE(job.data.random_crop.has_value());
  CHECK(parse(job.resolved_text).data.augmentation == job.data.augmentation);
  CHECK(said_of("data { digits {} augmentation { random_resized_crop { max_aspect: 0.9 } } }") ==
        "job.txtpb:3:55: error: max_aspect must be in [1, 10], not 0.9");
  CHECK(said_of("data { digits {} augmentation { random_resized_crop { min_area: 1.1 } } }") ==
        "job.txtpb:3:55: error: min_area must be in [0.01, 1], not 1.1");
  const std::string flat = "data { npy { directory: \"a\" classes: 2 height: 30 width: 60 } augmentation { ";
  CHECK_NOTHROW(parse(with_data(flat + "random_resized_crop { min_area: 0.5 max_aspect: 1 } } }")));
  CHECK(said_of(flat + "random_resized_crop { min_area: 0.7 } } }") ==
        "job.txtpb:3:78: error: of images of 30 x 60 pixels a rectangle of max_aspect 1.3333 is at most 0.667 of the "
        "area, which is below min_area, 0.7; raise max_aspect or lower min_area");
}

TEST_CASE("random crops of files need a size for the test images") {
  const std::string images = "data { images { directory: \"a\" classes: 2 decoding { height: 28 width: 28 } } ";
  CHECK(said_of(images + "augmentation { random_resized_crop {} } }") ==
        "job.txtpb:3:94: error: random_resized_crop needs data.images.decoding.resize, the size of test images");
  CHECK_THAT(refusal(with_data(images + "augmentation { random_resized_crop { min_area: 0 } } }")),
             ContainsSubstring("error: min_area must be in [0.01, 1], not 0"));
}

namespace {

// A job for ratings.
std::string with_ratings(const std::string& ratings, const std::string& more = "") {
  std::string text = with_data("data { ratings { " + ratings + " } " + more + "}");
  return text.replace(text.find("lenet {}"), 8, "matrix_factorization {}");
}

}  // namespace

TEST_CASE("ratings are described by the job") {
  const JobOptions job = parse(with_ratings("directory: \"own\" sizes: [50, 40] test_ids: \"later_ids.npy\""));
  CHECK(job.data.kind == Kind::kRatings);
  CHECK(job.data.directory == "own");
  CHECK(job.data.train == "train_ids.npy");
  CHECK(job.data.train_labels == "train_targets.npy");
  CHECK(job.data.test == "later_ids.npy");
  CHECK(job.data.test_labels == "test_targets.npy");
  CHECK(job.data.input == dataflow::ratings_input({50, 40}));
  CHECK_FALSE(job.data.training_examples.has_value());
  const JobOptions again = parse(job.resolved_text);
  CHECK(again.data.input == job.data.input);
  CHECK(again.resolved_text == job.resolved_text);
}

TEST_CASE("errors for ratings say what is wrong and what to do") {
  const auto said = [](const std::string& ratings, const std::string& more = "") {
    return refusal(with_ratings(ratings, more));
  };
  CHECK_THAT(said("sizes: [50, 40]"), ContainsSubstring("directory is missing"));
  CHECK_THAT(said("directory: \"d\""), ContainsSubstring("sizes is missing: how many ids each column has"));
  CHECK_THAT(said("directory: \"d\" sizes: [50, 0]"), ContainsSubstring("sizes[1] must be in [1, 1000000000], not 0"));
  CHECK_THAT(said("directory: \"d\" sizes: [50, 40, 3]"), ContainsSubstring("with 2 columns of ids"));
  CHECK_THAT(said("directory: \"d\" sizes: [50, 40] test_ids: \"\""), ContainsSubstring("test_ids is empty"));
  CHECK_THAT(said("directory: \"d\" sizes: [50, 40]", "augmentation { padding: 1 } "),
             ContainsSubstring("augmentation is for images, and ratings are not images"));
  CHECK_THAT(said("directory: \"d\" sizes: [50, 40]", "normalization { mean: 0.5 } "),
             ContainsSubstring("normalization is for images, and ratings are not images"));
  CHECK_THAT(refusal(with_ratings("directory: \"d\" sizes: [50, 40]"), {"training.target_accuracy=0.9"},
                     engine::ErrorKind::kUsage),
             ContainsSubstring("target_accuracy is for classifiers, and ratings are numbers; remove it"));
}

}  // namespace arbalest::jobs
