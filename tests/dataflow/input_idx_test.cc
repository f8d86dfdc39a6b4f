#include "dataflow/input/formats/idx.h"

#include <string>
#include <vector>

#include "engine/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/data_root.h"
#include "tests/support/idx_writer.h"
#include "tests/support/read_example.h"
#include "tests/support/temporary_directory.h"

namespace {

using arbalest::dataflow::ByteImages;
using arbalest::dataflow::IdxSource;
using arbalest::dataflow::load_idx;
using arbalest::dataflow::Split;
using arbalest::engine::Error;
using arbalest::engine::ErrorKind;
using arbalest::engine::Shape;
using arbalest::tests::gzip;
using arbalest::tests::idx_header;
using arbalest::tests::idx_images;
using arbalest::tests::idx_labels;
using arbalest::tests::TemporaryDirectory;
using arbalest::tests::write_idx_dataset;
using arbalest::tests::write_text;

constexpr const char* kImages = "train-images-idx3-ubyte";
constexpr const char* kLabels = "train-labels-idx1-ubyte";

IdxSource source(const TemporaryDirectory& directory) {
  return {"small", directory.path(), arbalest::dataflow::image_input({1, 4, 3}, 10), {{0.5F}, {0.25F}}};
}

// Returns the error message of load_idx(). The error must be of kind kData and name `file`.
std::string failure(const TemporaryDirectory& directory, const std::string& file) {
  try {
    load_idx(source(directory), Split::kTrain);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kData);
    CHECK_THAT(error.what(), ContainsSubstring((directory / file).string()));
    return error.what();
  }
  FAIL("the dataset was accepted");
  return "";
}

// Returns the error if `file` holds `content` and all other files are valid.
std::string failure_with(const std::string& file, const std::string& content) {
  const TemporaryDirectory directory;
  write_idx_dataset(directory.path(), 12);
  write_text(directory / file, content);
  return failure(directory, file);
}

std::string failure_with_gzip(const std::string& file, const std::string& content) {
  const TemporaryDirectory directory;
  write_idx_dataset(directory.path(), 12);
  std::filesystem::remove(directory / file);
  write_text(directory / (file + ".gz"), content);
  return failure(directory, file + ".gz");
}

}  // namespace

TEST_CASE("IDX: images are normalized, labels kept", "[input]") {
  const TemporaryDirectory directory;
  write_idx_dataset(directory.path(), 12);
  const auto data = load_idx(source(directory), Split::kTrain);
  CHECK(data->name() == "small train");
  CHECK(data->size() == 12);
  CHECK(data->description().image() == Shape{1, 4, 3});
  for (std::int64_t example = 0; example < 12; ++example) {
    CHECK(arbalest::dataflow::class_of(*data, example) == example % 10);
    std::vector<float> image(12);
    arbalest::tests::read_image(*data, example, {}, image.data());
    for (std::size_t i = 0; i < 12; ++i) {
      CHECK(image[i] == Approx((static_cast<double>(example) + static_cast<double>(i)) / 255.0 / 0.25 - 2.0));
    }
  }
}

TEST_CASE("IDX: gzip and raw files give the same data, with or without .gz", "[input]") {
  const TemporaryDirectory raw;
  write_idx_dataset(raw.path(), 300);
  const auto expected = load_idx(source(raw), Split::kTrain);
  for (const std::string suffix : {"", ".gz"}) {
    const TemporaryDirectory directory;
    write_text(directory / (kImages + suffix), gzip(idx_images(300, 4, 3)));
    write_text(directory / (kLabels + suffix), gzip(idx_labels(300)));
    const auto actual = load_idx(source(directory), Split::kTrain);
    CHECK(actual->pixels() == expected->pixels());
    CHECK(actual->labels() == expected->labels());
  }
}

TEST_CASE("IDX: gzip data may consist of several members", "[input]") {
  const TemporaryDirectory directory;
  write_idx_dataset(directory.path(), 12);
  const std::string content = idx_images(12, 4, 3);
  write_text(directory / kImages, gzip(content.substr(0, 50)) + gzip(content.substr(50)));
  CHECK(load_idx(source(directory), Split::kTrain)->size() == 12);
}

TEST_CASE("IDX: the error for a missing dataset names the files and says how to get them", "[input]") {
  const TemporaryDirectory directory;
  const std::string message = failure(directory, kImages);
  CHECK_THAT(message, ContainsSubstring((directory / (std::string(kImages) + ".gz")).string()));
  CHECK_THAT(message, ContainsSubstring("--data-root"));
  CHECK_THAT(message, ContainsSubstring("$ARBALEST_DATA"));

  write_text(directory / kImages, idx_images(12, 4, 3));
  CHECK_THAT(failure(directory, kLabels), ContainsSubstring("missing"));
}

TEST_CASE("IDX: the error for files named as in some archives gives the right name", "[input]") {
  const TemporaryDirectory directory;
  write_text(directory / "train-images.idx3-ubyte", idx_images(12, 4, 3));
  CHECK_THAT(failure(directory, "train-images.idx3-ubyte"),
             ContainsSubstring("its name has to be 'train-images-idx3-ubyte'; rename the files"));
  write_idx_dataset(directory.path(), 12);
  std::filesystem::rename(directory / kLabels, directory / "train-labels.idx1-ubyte.gz");
  CHECK_THAT(failure(directory, "train-labels.idx1-ubyte.gz"),
             ContainsSubstring("its name has to be 'train-labels-idx1-ubyte.gz'"));
}

TEST_CASE("IDX: every prefix of the files is refused", "[input]") {
  const std::string images = idx_images(12, 4, 3);
  for (std::size_t bytes = 0; bytes < images.size(); ++bytes) {
    CHECK_THAT(failure_with(kImages, images.substr(0, bytes)), ContainsSubstring("truncated"));
  }
  const std::string labels = idx_labels(12);
  for (std::size_t bytes = 0; bytes < labels.size(); ++bytes) {
    CHECK_THAT(failure_with(kLabels, labels.substr(0, bytes)), ContainsSubstring("truncated"));
  }
}

TEST_CASE("IDX: every prefix of a gzip file is refused", "[input]") {
  const std::string images = gzip(idx_images(12, 4, 3));
  for (std::size_t bytes = 0; bytes < images.size(); ++bytes) {
    CHECK_THAT(failure_with_gzip(kImages, images.substr(0, bytes)), ContainsSubstring("truncated"));
  }
}

TEST_CASE("IDX: bytes after the end are refused", "[input]") {
  CHECK_THAT(failure_with(kImages, idx_images(12, 4, 3) + "x"), ContainsSubstring("goes on after byte 160"));
  CHECK_THAT(failure_with(kLabels, idx_labels(12) + "x"), ContainsSubstring("goes on after byte 20"));
  CHECK_THAT(failure_with_gzip(kImages, gzip(idx_images(12, 4, 3) + "x")), ContainsSubstring("goes on after byte 160"));
  CHECK_THAT(failure_with_gzip(kImages, gzip(idx_images(12, 4, 3)) + "x"), ContainsSubstring("gzip"));
}

TEST_CASE("IDX: a wrong magic number, element type or rank is refused", "[input]") {
  CHECK_THAT(failure_with(kImages, "\x89PNG\r\n\x1a\n and so on, and so on"), ContainsSubstring("is not an IDX file"));
  CHECK_THAT(failure_with(kImages, idx_header({12, 4, 3}, 0x0D) + std::string(576, 'x')),
             ContainsSubstring("type 0x0d"));
  CHECK_THAT(failure_with(kImages, idx_labels(12)), ContainsSubstring("1 dimensions instead of 3"));
  CHECK_THAT(failure_with(kLabels, idx_images(12, 4, 3)), ContainsSubstring("3 dimensions instead of 1"));
}

TEST_CASE("IDX: impossible dimensions are refused before anything is allocated", "[input]") {
  CHECK_THAT(failure_with(kImages, idx_header({0xFFFFFFFF, 4, 3})), ContainsSubstring("4294967295 x 4 x 3"));
  CHECK_THAT(failure_with(kImages, idx_header({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF})), ContainsSubstring("pixels"));
  CHECK_THAT(failure_with(kLabels, idx_header({0xFFFFFFFF})), ContainsSubstring("more than the file can hold"));
  CHECK_THAT(failure_with_gzip(kLabels, gzip(idx_header({0xFFFFFFFF}))),
             ContainsSubstring("more than the file can hold"));
  CHECK_THAT(failure_with(kImages, idx_header({0, 4, 3})), ContainsSubstring("holds no data"));
}

TEST_CASE("IDX: images of another size are refused", "[input]") {
  CHECK_THAT(failure_with(kImages, idx_images(12, 3, 4)), ContainsSubstring("3 x 4 pixels; small has 4 x 3"));
}

TEST_CASE("IDX: image and label counts must agree", "[input]") {
  const std::string message = failure_with(kLabels, idx_labels(11));
  CHECK_THAT(message, ContainsSubstring("12 images"));
  CHECK_THAT(message, ContainsSubstring("11 labels"));
}

TEST_CASE("IDX: the error for a label out of range names its record", "[input]") {
  std::string labels = idx_labels(12);
  labels[8 + 5] = 10;
  CHECK_THAT(failure_with(kLabels, labels),
             ContainsSubstring("record 5 (byte 13): label 10 is not in [0, 10); get the file again"));
}

TEST_CASE("IDX: a flipped bit in a gzip file changes no pixel unnoticed", "[input]") {
  const std::string content = idx_images(12, 4, 3);
  const std::string images = gzip(content);
  const TemporaryDirectory directory;
  write_idx_dataset(directory.path(), 12);
  const auto expected = load_idx(source(directory), Split::kTrain);
  std::size_t refused = 0;
  for (std::size_t bit = 0; bit < images.size() * 8; ++bit) {
    std::string corrupt = images;
    corrupt[bit / 8] = static_cast<char>(static_cast<unsigned char>(corrupt[bit / 8]) ^ (1U << (bit % 8)));
    write_text(directory / kImages, corrupt);
    try {
      const auto actual = load_idx(source(directory), Split::kTrain);
      // Some bits have no meaning, such as the time in gzip's header and the padding of the last byte.
      CHECK(actual->pixels() == expected->pixels());
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kData);
      ++refused;
    }
  }
  CHECK(refused > images.size() * 8 / 2);
  std::string wrong_checksum = images;
  wrong_checksum[images.size() - 8] = static_cast<char>(~wrong_checksum[images.size() - 8]);
  CHECK_THAT(failure_with_gzip(kImages, wrong_checksum), ContainsSubstring("incorrect data check"));
}

TEST_CASE("IDX: unreadable files are refused", "[input]") {
  const TemporaryDirectory directory;
  write_idx_dataset(directory.path(), 12);
  std::filesystem::remove(directory / kImages);
  std::filesystem::create_directory(directory / kImages);
  CHECK_THAT(failure(directory, kImages), ContainsSubstring("is a directory"));

  std::filesystem::remove(directory / kImages);
  std::filesystem::create_symlink(kImages, directory / kImages);  // points to itself: not even root can open it
  CHECK_THAT(failure(directory, kImages), ContainsSubstring("cannot be opened"));
}

TEST_CASE("IDX: the real MNIST is read", "[input][data]") {
  const auto directory = arbalest::tests::dataset_or_skip("mnist");
  const IdxSource mnist{"mnist", directory, arbalest::dataflow::image_input({1, 28, 28}, 10), {{0.1307F}, {0.3081F}}};
  const auto train = load_idx(mnist, Split::kTrain);
  const auto test = load_idx(mnist, Split::kTest);
  CHECK(train->size() == 60'000);
  CHECK(test->size() == 10'000);
  // The first labels are well known: 5 0 4 1 9 ... and 7 2 1 0 4 ...
  const std::vector<std::int32_t> train_start(train->labels().begin(), train->labels().begin() + 5);
  const std::vector<std::int32_t> test_start(test->labels().begin(), test->labels().begin() + 5);
  CHECK(train_start == std::vector<std::int32_t>{5, 0, 4, 1, 9});
  CHECK(test_start == std::vector<std::int32_t>{7, 2, 1, 0, 4});
  // Normalized with its own statistics, the training set has mean 0 and variance 1.
  std::vector<float> image(784);
  double sum = 0.0;
  double squares = 0.0;
  for (std::int64_t example = 0; example < train->size(); ++example) {
    arbalest::tests::read_image(*train, example, {}, image.data());
    for (const float value : image) {
      sum += static_cast<double>(value);
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
  }
  CHECK(sum / 60'000 / 784 == Approx(0.0).margin(1e-3));
  CHECK(squares / 60'000 / 784 == Approx(1.0).margin(1e-3));
}
