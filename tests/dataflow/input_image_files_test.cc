// Folders and lists of images, and the dataset that decodes them.
#include "dataflow/input/formats/image_files.h"

#include <cstring>

#include "dataflow/input/batches/batch_ring.h"
#include "dataflow/input/images/encoded_images.h"
#include "engine/backends/devices.h"
#include "engine/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/data_failure.h"
#include "tests/support/image_writer.h"
#include "tests/support/read_example.h"
#include "tests/support/temporary_directory.h"

namespace {

namespace fs = std::filesystem;
using namespace arbalest;
using dataflow::EncodedImages;
using dataflow::Framing;
using dataflow::ImageFileList;
using dataflow::ImageFilesSource;
using dataflow::OnUnreadable;
using dataflow::Split;
using tests::data_failure;
using tests::gradient;
using tests::jpeg;
using tests::png;
using tests::TemporaryDirectory;
using tests::write_text;
using Strings = std::vector<std::string>;

void write_file(const fs::path& path, const std::string& content) {
  fs::create_directories(path.parent_path());
  write_text(path, content);
}

// Writes train/ with two cats and a dog, test/ with a dog.
void write_tree(const TemporaryDirectory& directory) {
  write_file(directory / "train/cat/b.png", png(gradient(20, 12, 3, 1)));
  write_file(directory / "train/cat/a.JPEG", jpeg(gradient(30, 40, 3, 2)));
  write_file(directory / "train/dog/c.jpg", jpeg(gradient(16, 16, 1, 3)));
  write_file(directory / "test/dog/d.png", png(gradient(9, 9, 1, 4)));
}

// What is said of the test set, which has no cat.
const std::string kNoCat = ": has no image of these classes of the training set, so scores leave them out: cat";

ImageFilesSource source(const TemporaryDirectory& directory) { return {directory.path(), "train", "test"}; }

ImageFileList list(const TemporaryDirectory& directory, Split split = Split::kTrain) {
  Strings warnings;
  return list_image_files(source(directory), split, warnings);
}

EncodedImages images(const TemporaryDirectory& directory,
                     const Framing& framing = {.resize = 10, .random_crop = {}, .seed = 0},
                     OnUnreadable on_unreadable = OnUnreadable::kStop, Split split = Split::kTrain) {
  Strings warnings;
  return {"small train",     dataflow::image_input({3, 8, 6}, 2),
          {{0.5F}, {0.25F}}, open_image_files(source(directory), split, 2, warnings),
          framing,           {},
          on_unreadable};
}

constexpr std::size_t kPixels = 3 * 8 * 6;

std::vector<float> read(const dataflow::Dataset& data, std::int64_t example,
                        const dataflow::ExamplePosition& position = {}) {
  std::vector<float> image(kPixels);
  tests::read_image(data, example, position, image.data());
  return image;
}

}  // namespace

TEST_CASE("image files: folders are classes in the order of their names", "[input]") {
  const TemporaryDirectory directory;
  write_tree(directory);
  const ImageFileList train = list(directory);
  CHECK(train.classes == Strings{"cat", "dog"});
  REQUIRE(train.files.size() == 3);
  CHECK(train.files[0].path == directory / "train/cat/a.JPEG");
  CHECK(train.files[1].path == directory / "train/cat/b.png");
  CHECK(train.files[2].path == directory / "train/dog/c.jpg");
  CHECK((train.files[0].label == 0 && train.files[1].label == 0 && train.files[2].label == 1));
  const ImageFileList test = list(directory, Split::kTest);
  REQUIRE(test.files.size() == 1);
  CHECK(test.files[0].label == 1);
}

TEST_CASE("image files: a list names images, and their folders are the classes", "[input]") {
  const TemporaryDirectory directory;
  write_tree(directory);
  write_text(directory / "train.txt", "train/dog/c.jpg\r\n\ntrain/cat/a.JPEG\n");
  write_text(directory / "test.txt", "./test/dog/d.png");
  const ImageFilesSource lists{directory.path(), "train.txt", "test.txt"};
  Strings warnings;
  const ImageFileList train = list_image_files(lists, Split::kTrain, warnings);
  CHECK(train.classes == Strings{"cat", "dog"});
  REQUIRE(train.files.size() == 2);
  CHECK(train.files[0].path == directory / "train/cat/a.JPEG");
  CHECK(warnings.empty());
  CHECK(list_image_files(lists, Split::kTest, warnings).files.at(0).path == directory / "test/dog/d.png");
  CHECK(warnings == Strings{(directory / "test.txt").string() + kNoCat});
  for (const std::string line :
       {"/etc/cat/a.jpg", "a.jpg", "../a.jpg", "../../secret/a.jpg", "train/../../cat/a.jpg"}) {
    write_text(directory / "train.txt", "train/cat/a.JPEG\n" + line + "\n");
    CHECK_THAT(data_failure([&] { list_image_files(lists, Split::kTrain, warnings); }),
               ContainsSubstring("train.txt:2: '" + line + "' must be a path below"));
  }
  write_text(directory / "train.txt", "train/../train/cat/a.JPEG\n");
  CHECK(list_image_files(lists, Split::kTrain, warnings).files.at(0).path == directory / "train/cat/a.JPEG");
  write_text(directory / "train.txt", "\xEF\xBB\xBFtrain/cat/a.JPEG\n");  // as some editors begin a file
  CHECK(list_image_files(lists, Split::kTrain, warnings).files.at(0).path == directory / "train/cat/a.JPEG");
  write_text(directory / "train.txt", std::string("train/cat/a.JPEG\0.txt\n", 22));
  CHECK_THAT(data_failure([&] { list_image_files(lists, Split::kTrain, warnings); }),
             ContainsSubstring("train.txt:1: holds a NUL"));
  write_text(directory / "train.txt", "\n");
  CHECK_THAT(data_failure([&] { list_image_files(lists, Split::kTrain, warnings); }),
             ContainsSubstring("lists no image"));
}

TEST_CASE("image files: a validation set has all classes, and no image of the training set") {
  const TemporaryDirectory directory;
  write_tree(directory);
  write_file(directory / "val/cat/e.png", png(gradient(9, 9, 1, 5)));
  ImageFilesSource validating = source(directory);
  validating.validation = "val";
  Strings warnings;
  const auto failure = [&] {
    return data_failure([&] { list_image_files(validating, Split::kValidation, warnings); });
  };
  CHECK_THAT(failure(), ContainsSubstring("val: there is no image of class 'dog'"));
  write_file(directory / "val/dog/f.png", png(gradient(9, 9, 1, 6)));
  const ImageFileList list = list_image_files(validating, Split::kValidation, warnings);
  REQUIRE(list.files.size() == 2);
  CHECK(list.files[1].path == directory / "val/dog/f.png");
  CHECK(list.files[1].label == 1);
  write_text(directory / "val.txt", "val/cat/e.png\ntrain/../train/dog/c.jpg\n");
  validating.validation = "val.txt";
  CHECK_THAT(failure(), ContainsSubstring("train/dog/c.jpg is also in " + (directory / "train").string()));
  validating.train = "./train";
  CHECK_THAT(failure(), ContainsSubstring("train/dog/c.jpg is also in "));
  write_text(directory / "val.txt", "val/cat/e.png\nval/dog/f.png\ntest/cat/d.png\n");
  write_file(directory / "test/cat/d.png", png(gradient(9, 9, 1, 7)));
  CHECK_THAT(failure(), ContainsSubstring("test/cat/d.png is also in " + (directory / "test").string()));
}

TEST_CASE("image files: files without an image's extension are skipped with a warning", "[input]") {
  const TemporaryDirectory directory;
  write_tree(directory);
  write_file(directory / "train/cat/Thumbs.db", "x");
  write_file(directory / "train/README", "x");
  fs::create_directories(directory / "train/cat/more");
  write_file(directory / "train/cat/._a.jpg", "x");
  write_file(directory / "train/.ipynb_checkpoints/a.jpg", "x");
  Strings warnings;
  const ImageFileList train = list_image_files(source(directory), Split::kTrain, warnings);
  CHECK(train.files.size() == 3);
  CHECK(train.classes == Strings{"cat", "dog"});
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0],
             ContainsSubstring("5 entries not named as images are left out (2 hidden, 1 .db, 1 folder, 1 without an "
                               "extension); the first: "));
  // Warnings about the training folder come with the training set only.
  warnings.clear();
  list_image_files(source(directory), Split::kTest, warnings);
  CHECK(warnings == Strings{(directory / "test").string() + kNoCat});
}

TEST_CASE("image files: missing folders, empty classes and classes without training images are refused", "[input]") {
  const TemporaryDirectory directory;
  CHECK_THAT(data_failure([&] { list(directory); }),
             ContainsSubstring((directory / "train").string() + ": dataset is missing") &&
                 ContainsSubstring("; check the path"));
  write_tree(directory);
  fs::create_directories(directory / "train/empty");
  CHECK_THAT(data_failure([&] { list(directory); }), ContainsSubstring("train/empty: the class has no image"));
  fs::remove(directory / "train/empty");
  write_file(directory / "test/bird/x.png", "x");
  CHECK_THAT(data_failure([&] { list(directory, Split::kTest); }),
             ContainsSubstring("class 'bird' is not among those of the training set"));
  Strings warnings;
  CHECK_THAT(data_failure([&] { open_image_files(source(directory), Split::kTrain, 3, warnings); }),
             ContainsSubstring("has 2 class folders (cat, dog), but the job says classes: 3; "));
  fs::remove_all(directory / "train");
  fs::create_directories(directory / "train");
  CHECK_THAT(data_failure([&] { list(directory); }), ContainsSubstring("holds no folder, so there is no class"));
}

TEST_CASE("image files: images of several sizes need a resize", "[input]") {
  const TemporaryDirectory directory;
  write_tree(directory);
  CHECK_THAT(data_failure([&] { read(images(directory, Framing{}), 1); }),
             ContainsSubstring((directory / "train/cat/b.png").string() + ": has 20 x 12 pixels") &&
                 ContainsSubstring("set decoding.resize"));
  write_file(directory / "train/cat/b.png", png(gradient(6, 8)));
  const auto image = gradient(6, 8);
  const std::vector<float> found = read(images(directory, Framing{}), 1);
  for (std::size_t i = 0; i < kPixels; ++i) {
    const std::uint8_t byte = image.samples[i % 48 * 3 + i / 48];
    CHECK(found[i] == (static_cast<float>(byte) / 255.0F - 0.5F) / 0.25F);
  }
}

TEST_CASE("image files: decoding all images at once gives the same bits as decoding one by one", "[input]") {
  const TemporaryDirectory directory;
  write_tree(directory);
  const int threads = GENERATE(1, 4);
  engine::host::Pool pool(threads);
  const EncodedImages data = images(directory);
  Strings warnings;
  const auto kept = data.decode_all(pool, warnings);
  CHECK(warnings.empty());
  REQUIRE(kept->size() == 3);
  CHECK(kept->name() == "small train");
  for (std::int64_t example = 0; example < 3; ++example) {
    CHECK(read(*kept, example) == read(data, example));
    CHECK(dataflow::class_of(*kept, example) == dataflow::class_of(data, example));
  }
}

TEST_CASE("image files: an unreadable image stops the run or is skipped, as the job says", "[input]") {
  const TemporaryDirectory directory;
  write_tree(directory);
  std::string fix = "; get it again";
  SECTION("not an image") {
    write_file(directory / "train/cat/b.png", "not an image");
    fix = "; convert it to one";
  }
  SECTION("empty") { write_file(directory / "train/cat/b.png", ""); }
  SECTION("truncated") { write_file(directory / "train/cat/b.png", png(gradient(20, 12)).substr(0, 60)); }
  SECTION("gone since it was listed, or not to be opened") {
    fs::remove(directory / "train/cat/b.png");
    fs::create_symlink("b.png", directory / "train/cat/b.png");  // points to itself: not even root can open it
    fix = "; check the path";
  }
  const Framing framing{.resize = 10, .random_crop = {}, .seed = 0};
  const std::string record = (directory / "train/cat/b.png").string();
  engine::host::Pool pool(2);
  Strings warnings;
  const EncodedImages stopping = images(directory);
  CHECK_THAT(data_failure([&] { read(stopping, 1); }),
             Catch::Matchers::StartsWith(record + ": ") && ContainsSubstring(fix + "; on_unreadable: SKIP goes on"));
  CHECK_THAT(data_failure([&] { stopping.decode_all(pool, warnings); }), Catch::Matchers::StartsWith(record + ": "));
  const EncodedImages skipping = images(directory, framing, OnUnreadable::kSkip);
  CHECK(skipping.decode_all(pool, warnings) == nullptr);  // mini-batches must leave the image out
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], ContainsSubstring("1 of 3 images cannot be read and are left out; the first: " + record) &&
                              Catch::Matchers::EndsWith(fix));

  const auto device = engine::open_device(engine::parse_device("cpu"));
  dataflow::SequentialOrder order(3, 3);
  dataflow::BatchRing broken(stopping, order, *device, pool, 2);
  CHECK_THAT(data_failure([&] { broken.next(); }), ContainsSubstring(record));
  dataflow::BatchRing ring(skipping, order, *device, pool, 2);
  const dataflow::Batch batch = ring.next().value();
  CHECK(batch.examples == 2);
  CHECK(batch.indices[1] == dataflow::BatchOrder::kNoExample);
  CHECK(tests::labels_of(batch)[0] == 0);
  CHECK(tests::labels_of(batch)[1] == engine::kNoLabel);
  CHECK(tests::labels_of(batch)[2] == 1);
  CHECK(std::equal(tests::images_of(batch) + kPixels, tests::images_of(batch) + 2 * kPixels, tests::images_of(batch)));
  CHECK(std::equal(tests::images_of(batch) + 2 * kPixels, tests::images_of(batch) + 3 * kPixels,
                   read(skipping, 2).begin()));
  CHECK(ring.skipped() == 1);
  ring.release(0);
  ring.restart();
  CHECK(ring.skipped() == 1);  // examples that were only read ahead do not count
  ring.next();
  CHECK(ring.skipped() == 2);
}

TEST_CASE("image files: skipping is refused if no image can be read", "[input]") {
  const TemporaryDirectory directory;
  write_tree(directory);
  for (const auto& file : list(directory).files) write_text(file.path, "no image");
  engine::host::Pool pool(1);
  Strings warnings;
  const EncodedImages data = images(directory, {.resize = 10, .random_crop = {}, .seed = 0}, OnUnreadable::kSkip);
  CHECK_THAT(data_failure([&] { data.decode_all(pool, warnings); }),
             ContainsSubstring("no image can be read") && ContainsSubstring("a.JPEG"));
}

TEST_CASE("image files: random crops and augmentation depend on the example's position only", "[input]") {
  const TemporaryDirectory directory;
  write_tree(directory);
  const Framing framing{
      .resize = 10, .random_crop = engine::RandomResizedCrop{.min_area = 0.08F, .log_max_aspect = 0.2876F}, .seed = 3};
  EncodedImages data = images(directory, framing);
  data.augment({.padding = 1, .cutout = 2, .horizontal_flip = true, .seed = 3});
  CHECK(data.is_random());
  const auto device = engine::open_device(engine::parse_device("cpu"));
  dataflow::ShuffledOrder order(3, 2, 1);
  engine::host::Pool pool(3);
  dataflow::BatchRing ring(data, order, *device, pool, 4);
  for (std::uint64_t number = 0; number < 12; ++number) {
    const dataflow::Batch batch = ring.next().value();
    for (std::uint32_t row = 0; row < 2; ++row) {
      const std::vector<float> expected = read(data, batch.indices[row], {number, row});
      CHECK(std::memcmp(expected.data(), tests::images_of(batch) + row * kPixels, kPixels * sizeof(float)) == 0);
      CHECK(expected != read(data, batch.indices[row], {number + 1, row}));
    }
    ring.release(number);
  }
}
