#include "dataflow/input/formats/cifar.h"

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/data_root.h"
#include "tests/support/read_example.h"
#include "tests/support/temporary_directory.h"

namespace {

using arbalest::dataflow::ByteImages;
using arbalest::dataflow::CifarVersion;
using arbalest::dataflow::load_cifar;
using arbalest::dataflow::Split;
using arbalest::engine::Error;
using arbalest::engine::ErrorKind;
using arbalest::tests::TemporaryDirectory;
using arbalest::tests::write_text;

constexpr std::size_t kPixels = 3072;
constexpr std::size_t kRecord10 = 1 + kPixels;
constexpr std::size_t kRecord100 = 2 + kPixels;

// Record n has the label (first + n) mod 10. Each of its pixels is the index of its plane plus the label.
std::string records10(std::size_t count, std::size_t first = 0) {
  std::string bytes;
  for (std::size_t n = first; n < first + count; ++n) {
    bytes += static_cast<char>(n % 10);
    for (std::size_t plane = 0; plane < 3; ++plane) bytes += std::string(1024, static_cast<char>(plane + n % 10));
  }
  return bytes;
}

// Coarse label 7, fine label 99 - n.
std::string records100(std::size_t count) {
  std::string bytes;
  for (std::size_t n = 0; n < count; ++n) {
    bytes += static_cast<char>(7);
    bytes += static_cast<char>(99 - n);
    bytes += std::string(kPixels, 'x');
  }
  return bytes;
}

using Strings = std::vector<std::string>;

void write_training_files(const TemporaryDirectory& directory, std::size_t records) {
  for (std::size_t i = 0; i < 5; ++i) {
    write_text(directory / ("data_batch_" + std::to_string(i + 1) + ".bin"), records10(records, i * records));
  }
}

std::string failure(const TemporaryDirectory& directory, const std::string& file,
                    CifarVersion version = CifarVersion::k10, Split split = Split::kTrain) {
  try {
    Strings warnings;
    load_cifar({version, directory.path(), {}}, split, warnings);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kData);
    CHECK_THAT(error.what(), ContainsSubstring((directory / file).string()));
    return error.what();
  }
  FAIL("the dataset was accepted");
  return "";
}

// Returns the error if the third training file holds `content` and all other files are valid.
std::string failure_with(const std::string& content) {
  const TemporaryDirectory directory;
  write_training_files(directory, 2);
  write_text(directory / "data_batch_3.bin", content);
  return failure(directory, "data_batch_3.bin");
}

}  // namespace

TEST_CASE("CIFAR-10: all files are read in order, and each channel has its normalization", "[input]") {
  const TemporaryDirectory directory;
  write_training_files(directory, 3);
  Strings warnings;
  const auto data = load_cifar({CifarVersion::k10, directory.path(), {{0.0F, 0.5F, 1.0F}, {1.0F, 0.5F, 2.0F}}},
                               Split::kTrain, warnings);
  CHECK(data->name() == "cifar10 train");
  CHECK(data->size() == 15);
  CHECK(data->description() == arbalest::dataflow::cifar_description(CifarVersion::k10));
  std::vector<float> image(kPixels);
  for (std::int64_t example = 0; example < 15; ++example) {
    CHECK(arbalest::dataflow::class_of(*data, example) == example % 10);
    arbalest::tests::read_image(*data, example, {}, image.data());
    const auto label = static_cast<float>(example % 10);
    CHECK(image[0] == label / 255.0F);
    CHECK(image[1023] == label / 255.0F);
    CHECK(image[1024] == ((label + 1.0F) / 255.0F - 0.5F) / 0.5F);
    CHECK(image[3071] == ((label + 2.0F) / 255.0F - 1.0F) / 2.0F);
  }
}

TEST_CASE("CIFAR-100: the fine labels are used", "[input]") {
  const TemporaryDirectory directory;
  write_text(directory / "test.bin", records100(4));
  Strings warnings;
  const auto data = load_cifar({CifarVersion::k100, directory.path(), {}}, Split::kTest, warnings);
  CHECK(data->name() == "cifar100 test");
  CHECK(data->labels() == std::vector<std::int32_t>{99, 98, 97, 96});
}

TEST_CASE("CIFAR: the error for a missing file names it and says how to get it", "[input]") {
  const TemporaryDirectory directory;
  write_training_files(directory, 1);
  CHECK_THAT(failure(directory, "test_batch.bin", CifarVersion::k10, Split::kTest),
             ContainsSubstring("cifar-10-batches-bin") && ContainsSubstring("--data-root"));
  std::filesystem::remove(directory / "data_batch_4.bin");
  CHECK_THAT(failure(directory, "data_batch_4.bin"), ContainsSubstring("dataset is missing"));
  CHECK_THAT(failure(directory, "train.bin", CifarVersion::k100), ContainsSubstring("cifar-100-binary"));
}

TEST_CASE("CIFAR: a file that ends within a record is refused, and the error names the record", "[input]") {
  const std::string content = records10(2);
  for (const std::size_t bytes : {std::size_t{1}, kRecord10 - 1, kRecord10 + 1, 2 * kRecord10 - 1}) {
    CAPTURE(bytes);
    const std::string record = bytes < kRecord10 ? "record 0 (byte 0)" : "record 1 (byte 3073)";
    CHECK_THAT(failure_with(content.substr(0, bytes)),
               ContainsSubstring("truncated") && ContainsSubstring(record) && ContainsSubstring("get the file again"));
  }
  CHECK_THAT(failure_with(content + "trailing"),
             ContainsSubstring("its last 8 bytes are no whole record") && ContainsSubstring("record 2 (byte 6146)"));
  CHECK_THAT(failure_with(""), ContainsSubstring("is empty"));
  // An error after the first thousand records, which are read in one piece.
  CHECK_THAT(failure_with(records10(1001) + "x"), ContainsSubstring("record 1001 (byte"));
}

TEST_CASE("CIFAR: a number of records that differs from the published files is a warning", "[input]") {
  const TemporaryDirectory directory;
  write_training_files(directory, 10'000);
  Strings warnings;
  CHECK(load_cifar({CifarVersion::k10, directory.path(), {}}, Split::kTrain, warnings)->size() == 50'000);
  CHECK(warnings.empty());
  write_text(directory / "data_batch_3.bin", records10(9'999));
  write_text(directory / "data_batch_5.bin", records10(10'001));
  CHECK(load_cifar({CifarVersion::k10, directory.path(), {}}, Split::kTrain, warnings)->size() == 50'000);
  CHECK(warnings == Strings{directory.path().string() +
                            ": data_batch_3.bin has 9999 records instead of 10000, data_batch_5.bin has 10001 records "
                            "instead of 10000; get them again unless these numbers are intended"});
  warnings.clear();
  write_text(directory / "train.bin", records100(10));
  load_cifar({CifarVersion::k100, directory.path(), {}}, Split::kTrain, warnings);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], ContainsSubstring("train.bin has 10 records instead of 50000"));
}

TEST_CASE("CIFAR: the error for a label out of range names its record", "[input]") {
  std::string content = records10(3);
  content[2 * kRecord10] = 10;
  CHECK_THAT(failure_with(content),
             ContainsSubstring("record 2 (byte 6146): label 10 is not in [0, 10); get the file again"));
  const TemporaryDirectory directory;
  content = records100(2);
  content[kRecord100 + 1] = 100;
  write_text(directory / "train.bin", content);
  CHECK_THAT(failure(directory, "train.bin", CifarVersion::k100),
             ContainsSubstring("record 1 (byte 3075): label 100 is not in [0, 100)"));
}

TEST_CASE("CIFAR-10: the real training set has the statistics that jobs normalize with", "[input][data]") {
  const auto directory = arbalest::tests::dataset_or_skip("cifar-10");
  Strings warnings;
  const auto data = load_cifar({CifarVersion::k10, directory, {}}, Split::kTrain, warnings);
  REQUIRE(data->size() == 50'000);
  CHECK(load_cifar({CifarVersion::k10, directory, {}}, Split::kTest, warnings)->size() == 10'000);
  CHECK(warnings.empty());
  const std::array<double, 3> mean{0.4914, 0.4822, 0.4465};
  const std::array<double, 3> stddev{0.2470, 0.2435, 0.2616};
  for (std::size_t channel = 0; channel < 3; ++channel) {
    double sum = 0.0;
    double squares = 0.0;
    for (std::size_t example = 0; example < 50'000; ++example) {
      const std::uint8_t* pixels = data->pixels().data() + example * kPixels + channel * 1024;
      for (std::size_t p = 0; p < 1024; ++p) {
        const double value = pixels[p] / 255.0;
        sum += value;
        squares += value * value;
      }
    }
    const double average = sum / 50'000 / 1024;
    CHECK(average == Approx(mean[channel]).margin(5e-5));
    CHECK(std::sqrt(squares / 50'000 / 1024 - average * average) == Approx(stddev[channel]).margin(5e-5));
  }
}
