#include "dataflow/input/formats/npy.h"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/npy_writer.h"
#include "tests/support/read_example.h"
#include "tests/support/temporary_directory.h"

namespace {

using namespace arbalest;
using dataflow::load_npy;
using dataflow::SplitFiles;
using tests::bytes_of;
using tests::npy;
using tests::npy_file;
using tests::TemporaryDirectory;
using tests::write_text;

// Three images of 2 x 2 x 1 bytes.
const std::string kContent = "abcdefghijkl";
const std::string kImages = npy("|u1", "3, 2, 2, 1", kContent);
const std::string kLabels = npy("|u1", "3,", std::string("\x02\x00\x01", 3));

template <typename Pixel = std::uint8_t>
std::unique_ptr<dataflow::StoredImages<Pixel>> load(
    const std::string& images, const std::string& labels,
    const dataflow::InputDescription& expected = dataflow::image_input({2, 2, 1}, 3),
    const dataflow::Normalization& normalization = {}) {
  const TemporaryDirectory directory;
  write_text(directory / "images.npy", images);
  write_text(directory / "labels.npy", labels);
  return load_npy<Pixel>({"own train", directory / "images.npy", directory / "labels.npy", expected, normalization});
}

template <typename Pixel = std::uint8_t>
std::string failure(const std::string& images, const std::string& labels) {
  try {
    load<Pixel>(images, labels);
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kData);
    CHECK_THAT(error.what(), ContainsSubstring("images.npy") || ContainsSubstring("labels.npy"));
    return error.what();
  }
  FAIL("the arrays were accepted");
  return "";
}

}  // namespace

TEST_CASE("npy: images and labels are read, labels of any integer type", "[input]") {
  const auto data = load(kImages, kLabels);
  CHECK(data->name() == "own train");
  CHECK(std::string(data->pixels().begin(), data->pixels().end()) == kContent);
  CHECK(data->labels() == std::vector<std::int32_t>{2, 0, 1});
  for (const auto& [type, bytes] :
       std::vector<std::pair<std::string, std::size_t>>{{"|i1", 1}, {"<i2", 2}, {"<u2", 2}, {"<i4", 4}, {"<i8", 8}}) {
    std::string content;
    for (const char label : {'\x02', '\x00', '\x01'}) content += label + std::string(bytes - 1, '\0');
    CHECK(load(kImages, npy(type, "3,", content))->labels() == data->labels());
  }
  CHECK(load(npy("|u1", "3, 2, 2", kContent), kLabels, dataflow::image_input({1, 2, 2}, 3))->size() == 3);
  CHECK(load(npy("|u1", "3, 4", kContent), kLabels, dataflow::image_input({4, 1, 1}, 3))->size() == 3);
  CHECK(load(npy("|u1", "3, 4", kContent), kLabels, dataflow::image_input({1, 1, 4}, 3))->size() == 3);
  CHECK(load(npy("|u1", "3, 2, 2, 1", kContent), kLabels, dataflow::image_input({1, 2, 2}, 3))->pixels() ==
        data->pixels());
}

TEST_CASE("npy: labels may have more than 256 classes", "[input]") {
  const std::string labels = npy("<i4", "3,", bytes_of<std::int32_t>({999'999, 0, 256}));
  CHECK(load(kImages, labels, dataflow::image_input({2, 2, 1}, 1'000'000))->labels() ==
        std::vector<std::int32_t>{999'999, 0, 256});
}

TEST_CASE("npy: floating-point images of 4 and 8 bytes are normalized", "[input]") {
  const std::vector<float> values{-1.5F, 0.0F, 3e5F, 0.25F, 2.0F, 1e-3F, 7.0F, 8.0F, 9.0F, 10.0F, 11.0F, 12.0F};
  const std::vector<double> doubles(values.begin(), values.end());
  const auto numbers = load<float>(npy("<f4", "3, 4", bytes_of(values)), kLabels, dataflow::image_input({4, 1, 1}, 3));
  CHECK(numbers->pixels() == values);
  CHECK(load<float>(npy("<f8", "3, 4", bytes_of(doubles)), kLabels, dataflow::image_input({4, 1, 1}, 3))->pixels() ==
        values);
  CHECK_FALSE(numbers->stored_bytes().has_value());
  CHECK(numbers->memory_bytes() == 12 * 4 + 3 * 4);
  std::vector<float> example(4);
  tests::read_image(*numbers, 1, {}, example.data());
  CHECK(example == std::vector<float>(values.begin() + 4, values.begin() + 8));
  const dataflow::Normalization normalization{{0.0F, 1.0F, 0.0F, 0.0F}, {1.0F, 2.0F, 0.5F, 4.0F}};
  const auto normalized =
      load<float>(npy("<f4", "3, 4", bytes_of(values)), kLabels, dataflow::image_input({4, 1, 1}, 3), normalization);
  tests::read_image(*normalized, 0, {}, example.data());
  CHECK(example == std::vector<float>{-1.5F, -0.5F, 6e5F, 0.0625F});
}

TEST_CASE("npy: augmenting bytes / 255 as floating point gives the same bits as augmenting the bytes", "[input]") {
  std::string pixels;
  std::vector<float> numbers;
  for (int i = 0; i < 3 * 2 * 6 * 7; ++i) {
    const auto byte = static_cast<std::uint8_t>(i * 37);
    pixels += static_cast<char>(byte);
    numbers.push_back(static_cast<float>(byte) / 255.0F);
  }
  const dataflow::InputDescription description = dataflow::image_input({2, 6, 7}, 3);
  const dataflow::Normalization normalization{{0.3F, 0.6F}, {0.2F, 0.4F}};
  const auto of_bytes = load(npy("|u1", "3, 2, 6, 7", pixels), kLabels, description, normalization);
  const auto of_numbers = load<float>(npy("<f4", "3, 2, 6, 7", bytes_of(numbers)), kLabels, description, normalization);
  const engine::Augmentation augmentation =
      GENERATE(engine::Augmentation{.padding = 2, .cutout = 3, .horizontal_flip = true, .seed = 5},
               engine::Augmentation{.random_crop = {.min_area = 0.2F, .log_max_aspect = 0.5F}, .seed = 5});
  of_bytes->augment(augmentation);
  of_numbers->augment(augmentation);
  std::vector<float> expected(2 * 6 * 7);
  std::vector<float> actual(expected.size());
  for (std::uint32_t row = 0; row < 30; ++row) {
    tests::read_image(*of_bytes, row % 3, {8, row}, expected.data());
    tests::read_image(*of_numbers, row % 3, {8, row}, actual.data());
    CHECK(std::memcmp(actual.data(), expected.data(), actual.size() * sizeof(float)) == 0);
  }
}

TEST_CASE("npy: numbers that are not finite are refused, and so are bytes where numbers are expected", "[input]") {
  std::vector<float> values(12, 1.0F);
  const auto failure_at = [&](std::size_t place, float value) {
    std::vector<float> damaged = values;
    damaged[place] = value;
    return failure<float>(npy("<f4", "3, 2, 2, 1", bytes_of(damaged)), kLabels);
  };
  CHECK_THAT(failure_at(0, std::nanf("")), ContainsSubstring("record 0: element 0: pixel nan is no finite number"));
  CHECK_THAT(failure_at(11, -HUGE_VALF), ContainsSubstring("record 2: element 3: pixel -inf is no finite number"));
  const std::string large = npy("<f8", "3, 2, 2, 1", bytes_of(std::vector<double>(12, 1e300)));
  CHECK_THAT(failure<float>(large, kLabels), ContainsSubstring("record 0: element 0: pixel 1e+300 is beyond float32"));
  CHECK_THAT(failure<float>(kImages, kLabels),
             ContainsSubstring("is of type '|u1'; with data.npy.pixels: FLOAT32 images are numbers"));
  CHECK_THAT(failure<float>(npy("<i8", "3, 2, 2, 1", std::string(96, 'x')), kLabels),
             ContainsSubstring("is of type '<i8'; pixels are floating-point numbers"));
  CHECK_THAT(failure<float>(npy("<f4", "3, 2, 2, 2", std::string(96, 'x')), kLabels),
             ContainsSubstring("need (n, 2, 2, 1)"));
}

TEST_CASE("npy: every prefix and trailing bytes are refused", "[input]") {
  for (std::size_t bytes = 0; bytes < kImages.size(); ++bytes) {
    CHECK_THAT(failure(kImages.substr(0, bytes), kLabels), ContainsSubstring("truncated"));
  }
  for (std::size_t bytes = 0; bytes < kLabels.size(); ++bytes) {
    CHECK_THAT(failure(kImages, kLabels.substr(0, bytes)), ContainsSubstring("truncated"));
  }
  CHECK_THAT(failure(kImages + "x", kLabels), ContainsSubstring("goes on after byte"));
  const std::string type = GENERATE("<f4", "<f8");
  const std::string numbers = npy(type, "3, 2, 2, 1", std::string(type == "<f4" ? 48 : 96, '\0'));
  for (std::size_t bytes = 0; bytes < numbers.size(); ++bytes) {
    CHECK_THAT(failure<float>(numbers.substr(0, bytes), kLabels), ContainsSubstring("truncated"));
  }
  CHECK_THAT(failure<float>(numbers + "x", kLabels), ContainsSubstring("goes on after byte"));
}

TEST_CASE("npy: arrays of other types or in Fortran order are refused", "[input]") {
  CHECK_THAT(failure("PK\x03\x04 and so on", kLabels), ContainsSubstring("is not an .npy file"));
  CHECK_THAT(failure(npy_file("{'descr': '|u1', 'fortran_order': True, 'shape': (3, 2, 2, 1), }", kContent), kLabels),
             ContainsSubstring("Fortran order"));
  CHECK_THAT(failure(npy("<f4", "3, 2, 2, 1", std::string(48, 'x')), kLabels),
             ContainsSubstring("is of type '<f4'; images are unsigned bytes") && ContainsSubstring("pixels: FLOAT32"));
  for (const bool labels : {false, true}) {
    const std::string objects = npy("|O", "3,", "\x80\x04pickled");
    CHECK_THAT(failure(labels ? kImages : objects, labels ? objects : kLabels),
               ContainsSubstring("pickled Python objects"));
  }
  CHECK_THAT(failure(npy_file("{'descr': [('a', '|u1')], 'fortran_order': False, 'shape': (3,), }", "abc"), kLabels),
             ContainsSubstring("several fields"));
  CHECK_THAT(failure(npy_file("{'fortran_order': False, 'shape': (3,), }", "abc"), kLabels),
             ContainsSubstring("no valid 'descr'"));
  CHECK_THAT(failure(kImages, npy(">i4", "3,", std::string(12, '\0'))), ContainsSubstring("little endian"));
  CHECK_THAT(failure(kImages, npy("<f8", "3,", std::string(24, '\0'))), ContainsSubstring("labels are integers"));
}

TEST_CASE("npy: shapes that do not fit are refused, before anything is allocated", "[input]") {
  CHECK_THAT(failure(npy("|u1", "3, 4, 1", kContent), kLabels), ContainsSubstring("need (n, 2, 2, 1)"));
  CHECK_THAT(failure(npy("|u1", "12", kContent), kLabels), ContainsSubstring("has the shape (12)"));
  CHECK_THAT(failure(npy("|u1", "9223372036854775807, 2, 2, 1", kContent), kLabels), ContainsSubstring("truncated"));
  CHECK_THAT(failure(npy("|u1", "99999999999999999999, 2, 2, 1", kContent), kLabels),
             ContainsSubstring("is impossible"));
  CHECK_THAT(failure(npy("|u1", "0, 2, 2, 1", ""), kLabels), ContainsSubstring("holds no data"));
  CHECK_THAT(failure(kImages, npy("|u1", "3, 1", "abc")), ContainsSubstring("labels have one dimension"));
  CHECK_THAT(failure(kImages, npy("|u1", "2,", std::string(2, '\0'))),
             ContainsSubstring("holds 3 images") && ContainsSubstring("holds 2 labels"));
  CHECK_THAT(failure(npy_file("{'descr': '|u1'" + std::string(5000, ' '), ""), kLabels),
             ContainsSubstring("its header cannot have"));
}

TEST_CASE("npy: the error for a label out of range names its record", "[input]") {
  CHECK_THAT(failure(kImages, npy("|u1", "3,", std::string("\x02\x00\x03", 3))),
             ContainsSubstring("record 2: label 3 is not in [0, 3); labels begin with 0"));
  CHECK_THAT(failure(kImages, npy("|i1", "3,", std::string("\x02\xFF\x01", 3))),
             ContainsSubstring("record 1: label -1 is not in [0, 3)"));
  CHECK_THAT(failure(kImages, npy("<u8", "3,", std::string(8, '\0') + std::string(16, '\xFF'))),
             ContainsSubstring("record 1: label"));
}
